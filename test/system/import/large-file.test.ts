import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { fileOf } from '../../core/imports/csv-file.ts'

const header =
  'supplier;document;number;date;total;lines.1.name;lines.1.amount;lines.1.quantity;lines.1.tax;lines.2.name;lines.2.amount\n'
const rowOf = (row: number) =>
  `sup_${row % 500};7;${row};25-03-2026;${row},50;Honorarios profesionales;1.000,75;1;0,19;"a; b";12,10\n`
const contents = (rows: number) =>
  header + Array.from({ length: rows }, (_, index) => rowOf(index + 1)).join('')

// 48 MB for what is kept: enough for a process that keeps nothing, and not for the changes of the file (tried).
const probe = async (rows: number) => {
  const script = join(import.meta.dirname, 'probes/import-file.ts')
  const path = await fileOf(contents(rows))
  const { stdout } = await promisify(execFile)(process.execPath, [
    '--max-old-space-size=48',
    '--max-semi-space-size=8',
    script,
    path,
  ])
  return JSON.parse(stdout) as {
    rows: number
    total: string
    staged: number
    cpuSeconds: number
    peakMegabytes: number
  }
}

test('a hundred thousand rows are checked and staged in seconds, in a heap that does not hold them', async () => {
  const seen = await probe(100_000)
  console.log('100,000 rows', seen)
  expect(seen).toMatchObject({ rows: 100_000, staged: 100_000, total: '5000100000.00' })
  expect(seen.cpuSeconds).toBeLessThan(10)
}, 120_000)
