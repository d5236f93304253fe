import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { customers } from '../../../core/billing/resources/customers.ts'
import { fieldOf } from '../../../core/billing/resources/fields.ts'
import { knownReadPlan, partsFolder } from '../../../core/exports/parts/read-plan.ts'
import type { ExportPlan } from '../../../core/exports/plan.ts'
import { cached } from '../../../core/storage/cached.ts'
import { toTables } from '../../../core/tables/privacy.ts'
import { createPlan } from '../../system/export/plan.ts'
import { temporaryFolder } from '../state/temporary-folder.ts'
import { planCustomers } from './plan-customers.ts'

async function beginRead(overrides: Partial<ExportPlan> = {}) {
  const dataDir = await temporaryFolder()
  const plan = createPlan(overrides)
  const deps = { dataDir, shared: cached(dataDir), hashKey: 'key' }
  const begun = await planCustomers({ deps, plan })
  const folder = partsFolder({ dataDir, run: plan.run, resource: 'customers' })
  return { deps, plan, begun, folder, shared: deps.shared }
}

test('a read keeps its first plan, also if another attempt brings one', async () => {
  const { deps, plan, begun, folder } = await beginRead()
  let requests = 0
  const onRequest = () => void (requests += 1)
  expect(await planCustomers({ deps: { ...deps, state: { now: () => 1 } }, plan, onRequest })).toEqual(begun)
  expect(requests, 'what is planned already').toBe(0)
  await writeFile(join(folder, 'read.json'), '{"tables"')
  await expect(planCustomers({ deps, plan })).rejects.toMatchObject({ name: 'PartsDamagedError' })
})

test('of two workers that plan a read at once, the second goes by the plan of the first', async () => {
  const { deps } = await beginRead()
  const plan = createPlan({ run: 'another' })
  const planAt = (time: number) => planCustomers({ deps: { ...deps, state: { now: () => time } }, plan })
  const [one, two] = await Promise.all([planAt(1), planAt(2)])
  expect(JSON.parse(JSON.stringify(one))).toEqual(JSON.parse(JSON.stringify(two)))
})

test('a version that says in other words what a column means continues the read', async () => {
  const { deps, plan, begun } = await beginRead()
  const field = fieldOf(customers.schema, 'id')
  if (field === undefined) throw new Error('customers have an id')
  const { note } = field
  onTestFinished(() => void Object.assign(field, { note }))
  field.note = 'said in other words'
  expect(toTables(customers)[0]?.columns).toContainEqual(expect.objectContaining({ note: field.note }))
  expect(await planCustomers({ deps, plan })).toEqual(begun)
})

test('parts are of the tables that the version which read them laid out; one with other columns leaves them alone', async () => {
  const { deps, plan, begun, folder, shared } = await beginRead()
  const older = begun.tables.slice(0, 1)
  await writeFile(join(folder, 'read.json'), JSON.stringify({ ...begun, tables: older }))
  expect((await knownReadPlan({ shared, folder })).tables).toEqual(older)
  await expect(planCustomers({ deps, plan })).rejects.toMatchObject({ name: 'OtherReadError' })
})

test.each<[what: string, plan: Partial<ExportPlan>, count: number, ranges: number]>([
  ['in as many ranges as are read at once', { parallel: 3 }, 9_000, 3],
  ['in as many as it has the records for', { parallel: 3 }, 2_999, 2],
  ['as one where it is short', { parallel: 3 }, 1_999, 1],
  ['as one where parallel is 1', { parallel: 1 }, 9_000, 1],
  ['as one where it is incremental', { parallel: 3, since: { customers: 0 } }, 9_000, 1],
  ['as one where the read is cut short', { parallel: 3, maxPages: 5 }, 9_000, 1],
])('a list is read %s', async (_, changed, count, ranges) => {
  const dataDir = await temporaryFolder()
  const planned = await planCustomers({
    deps: { dataDir, shared: cached(dataDir) },
    plan: createPlan(changed),
    count,
  })
  expect(planned.list?.ranges).toHaveLength(ranges)
})
