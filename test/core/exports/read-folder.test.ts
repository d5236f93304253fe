import { mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { customers } from '../../../core/billing/resources/customers.ts'
import { fieldOf } from '../../../core/billing/resources/fields.ts'
import { keepRangePlan, loadRangePlan } from '../../../core/exports/parts/ranges/kept-ranges.ts'
import { findRunFolder, layoutOfRead, openRunFolder } from '../../../core/exports/parts/read-folder.ts'
import type { ExportPlan } from '../../../core/exports/plan.ts'
import type { RangeState } from '../../../core/reading/range-state.ts'
import { cached } from '../../../core/storage/cached.ts'
import { toTables } from '../../../core/tables/privacy.ts'
import { createPlan } from '../../system/export/plan.ts'

async function createFolder(plan: Partial<ExportPlan> = {}) {
  const dataDir = await mkdtemp(join(tmpdir(), 'run-folder-'))
  onTestFinished(() => rm(dataDir, { recursive: true }))
  const shared = cached(dataDir)
  const options = { dataDir, shared, hashKey: 'key', resource: 'customers' as const, plan: createPlan(plan) }
  return { options, shared, folder: await openRunFolder(options) }
}

test('a read keeps its first division into ranges, also if another attempt brings one', async () => {
  const { shared, folder } = await createFolder()
  const planOf = (bound: number) => ({
    root: { startedAt: 1 } as RangeState,
    ranges: [{ range: { downTo: bound } }, { range: { upTo: bound } }],
  })
  await keepRangePlan({ shared, folder, plan: planOf(5) })
  await keepRangePlan({ shared, folder, plan: planOf(7) })
  expect(await loadRangePlan({ shared, folder })).toEqual(planOf(5))
  expect((await readdir(folder)).filter((name) => name.startsWith('ranges'))).toEqual(['ranges'])
  await writeFile(join(folder, 'ranges', 'plan.json'), '{"root"')
  await expect(loadRangePlan({ shared, folder })).rejects.toMatchObject({ name: 'PartsDamagedError' })
})

test('a worker that comes back with another hash key leaves the read alone instead of mixing two kinds of hashes', async () => {
  const { options, folder } = await createFolder({ hash: ['customers.tax_id'] })
  for (const begin of [openRunFolder, findRunFolder]) {
    await expect(begin({ ...options, hashKey: 'another' })).rejects.toMatchObject({ name: 'OtherReadError' })
    expect(await begin(options)).toBe(folder)
  }
})

test('a version that says in other words what a column means continues the read', async () => {
  const { options, folder } = await createFolder()
  const field = fieldOf(customers.schema, 'id')
  if (field === undefined) throw new Error('customers have an id')
  const { note } = field
  onTestFinished(() => void Object.assign(field, { note }))
  field.note = 'said in other words'
  expect(toTables(customers)[0]?.columns).toContainEqual(expect.objectContaining({ note: field.note }))
  expect(await openRunFolder(options)).toBe(folder)
})

test('parts are of the tables that the version which read them laid out; one with other columns leaves them alone', async () => {
  const { options, shared, folder } = await createFolder()
  const note = await layoutOfRead({ shared, folder })
  const older = note.tables.slice(0, 1)
  await writeFile(
    join(folder, 'read.json'),
    JSON.stringify({ ...note, fingerprint: 'of another version', tables: older }),
  )
  expect((await layoutOfRead({ shared, folder })).tables).toEqual(older)
  await expect(openRunFolder(options)).rejects.toMatchObject({ name: 'OtherReadError' })
})
