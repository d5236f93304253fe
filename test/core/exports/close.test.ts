import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { closeExport } from '../../../core/exports/close.ts'
import type { ExportedItem } from '../../../core/exports/report.ts'
import { cached } from '../../../core/storage/cached.ts'
import { createPlan } from '../../system/export/plan.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'

const published = {
  resource: 'customers',
  destination: 'csv',
  verdict: 'proven',
  reasons: [],
  records: 1,
  where: '',
  manifest: null,
  warnings: [],
  missing: { count: 1, first: ['x'] },
}

test.each<[string, object]>([
  ['a list that the run does not have', { resource: 'plans' }],
  ['a list that leads out of the data folder', { ...published, resource: '../../../outside' }],
  ['a manifest that lies elsewhere', { ...published, manifest: '../outside/manifest.json' }],
])('an export is not closed with %s, and nothing is written', async (_, item) => {
  const parent = await temporaryFolder()
  const dataDir = join(parent, 'data')
  await mkdir(dataDir)
  await mkdir(join(parent, 'outside'))
  await writeFile(join(parent, 'outside', 'manifest.json'), '{}')
  const closed = closeExport({
    dataDir,
    shared: cached(dataDir),
    files: undefined,
    plan: createPlan(),
    exports: [{ resource: 'customers', ...item } as unknown as ExportedItem],
    name: 'export-1',
  })
  await expect(closed).rejects.toMatchObject({ name: 'InvalidInput' })
  expect(await readdir(dataDir)).toEqual([])
})
