import { readdir } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { closeExport } from '../../../core/exports/close.ts'
import type { ExportedItem } from '../../../core/exports/report.ts'
import { cached } from '../../../core/storage/cached.ts'
import { sheetFor, toCsv } from '../../acceptance/example-exports.ts'
import { createPlan } from '../../system/export/plan.ts'
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

const close = (dataDir: string, exports: ExportedItem[]) =>
  closeExport({
    dataDir,
    shared: cached(dataDir),
    files: undefined,
    plan: createPlan(),
    exports,
    sheets: { 'sheet of customers to csv': sheetFor(published) },
    name: 'export-1',
  })
