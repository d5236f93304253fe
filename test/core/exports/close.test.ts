import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { closeExport } from '../../../core/exports/close.ts'
import type { ExportedItem } from '../../../core/exports/report.ts'
import { sheetFor, toCsv } from '../../acceptance/example-exports.ts'
import { createPlan } from '../../system/export/plan.ts'
import type { Sheets } from '../../../core/exports/sheet.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

const published = toCsv('customers', 1)

test.each<[string, Partial<ExportedItem>]>([
  ['a list that the run does not have', { resource: 'plans' }],
  ['a list that leads out of the data folder', { resource: '../../../outside' as 'plans' }],
  ['a publication that the run has not made', { destination: 'parquet' }],
])('an export is not closed with %s, and nothing is written', async (_, item) => {
  const dataDir = await temporaryFolder()
  const closed = close(dataDir, [{ ...published, ...item } as ExportedItem])
  await expect(closed).rejects.toMatchObject({ name: 'InvalidInput' })
  expect(await readdir(dataDir)).toEqual([])
})

test('a report says of a publication what its note says, whatever Temporal says', async () => {
  const told = { ...published, verdict: 'unproven', manifest: '../outside/manifest.json' } as const
  const { report } = await close(await temporaryFolder(), [told])
  expect(report).toMatchObject({ verdict: 'proven', exports: [published] })
})

test('a fetch names the file with the ids that do not exist, or the command that makes it of what is in a warehouse', async () => {
  const missing = { count: 30, first: ['x'], file: null }
  const inWarehouse = { ...published, missing, destination: 'duckdb', manifest: null } as const
  const inFiles = { ...published, missing, manifest: 's3://bucket/exports/customers/x/manifest.json' }
  const files = [{ path: 'missing-0123.csv', rows: 30, bytes: 90, sha256: '' }]
  const sheets = {
    'sheet of customers to duckdb': sheetFor(inWarehouse, { missing: { rows: 30, first: ['x'], files: [] } }),
    'sheet of customers to csv': sheetFor(inFiles, { missing: { rows: 30, first: ['x'], files } }),
  }
  const told = async (...exports: ExportedItem[]) => {
    const { report } = await close(await temporaryFolder(), exports, sheets)
    return [report.missing, report.next?.[0]?.command]
  }
  const file = 's3://bucket/exports/customers/x/missing-0123.csv'
  expect(await told(inWarehouse, inFiles)).toEqual([{ ...missing, file }, undefined])
  const command = expect.stringMatching(/run publish \S+ --to csv$/)
  expect(await told(inWarehouse)).toEqual([missing, command])
})

const close = (
  dataDir: string,
  exports: ExportedItem[],
  sheets: Sheets = { 'sheet of customers to csv': sheetFor(published) },
) =>
  closeExport({
    dataDir,
    files: undefined,
    plan: createPlan(),
    exports,
    sheets,
    name: 'export-1',
  })
