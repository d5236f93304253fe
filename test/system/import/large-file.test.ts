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

// Only many rows show that the heap does not hold them.
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

const rows = Number(process.env['IMPORT_ROWS'] ?? 40_000)

test(
  `${rows} rows are checked and staged in seconds, in a heap that does not hold them`,
  { tags: ['long'] },
  async () => {
    const seen = await probe(rows)
    console.log(seen)
    const total = (rows * (rows + 1)) / 2 + 0.5 * rows
    expect(seen).toMatchObject({ rows, staged: rows, total: total.toFixed(2) })
    // 8 to 21 for 100,000 rows on two cores, by what else runs there.
    expect(seen.cpuSeconds).toBeLessThan(rows / 2_500)
  },
)
