import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import type { ExportReport } from '../../../core/exports/report.ts'
import {
  connectTemporal,
  createWorld,
  manifestOf,
  resetToPlan,
  runExport,
  startRun,
  startTestWorker,
  until,
  type World,
} from './world.ts'

const counts = { customers: 150, subscriptions: 240, plans: 12, retentions: 5 }
const parents = ['GET /customers/', 'GET /plans/']

const urlsOf = ({ sandbox }: World) => sandbox.control.requests().map(({ url }) => url)
const isOfParent = (url: string) => /\/(customers|plans)\//.test(url)

type Named = [name: string, by: { id: string }[]]

/** Subscriptions by the customer, and by the plans, that they name. */
function namesIn({ sandbox }: World) {
  const subscriptions = sandbox.control
    .ids({ resource: 'subscriptions' })
    .map((id) => sandbox.control.get({ resource: 'subscriptions', id })!)
  const named = (of: (fields: (typeof subscriptions)[number]) => unknown[]) =>
    Map.groupBy(
      subscriptions.flatMap((fields) =>
        of(fields).map((name) => ({ id: String(fields['id']), name: String(name) })),
      ),
      ({ name }) => name,
    )
  return {
    customers: named(({ customer }) => [customer]),
    plans: named(({ lines }) => (lines as { plan: string }[]).map(({ plan }) => plan)),
  }
}

test('an export of lists that nothing changes says that every customer and plan of a subscription is in it', async () => {
  const world = await createWorld({ counts })
  await startTestWorker(world)
  const client = await connectTemporal()
  const report = await runExport(world)
  expect(report).toMatchObject({
    verdict: 'proven',
    references: [
      { field: 'subscriptions.customer', to: 'customers', checked: 240, complete: true },
      { field: 'subscriptions.lines.plan', to: 'plans', complete: true },
    ],
  })
  expect((await manifestOf(report, 'subscriptions')).references).toEqual(report.references)
  expect((await manifestOf(report, 'plans')).references).toBeUndefined()
  expect(await readFile(report.page!, 'utf8')).toContain(
    'every subscription&#39;s customer and plan is in this export',
  )

  const again = await client.workflow.execute('publishRun', {
    workflowId: `publish-${world.workspace}`,
    taskQueue: world.taskQueue,
    args: [{ run: report.run, to: ['parquet'] }],
  })
  expect((again as ExportReport).references).toEqual(report.references)
})

test('customers and plans are read after the subscriptions that name them, and those deleted in between are named with the reason', async () => {
  const world = await createWorld({ counts })
  const { control } = world.sandbox
  const names = namesIn(world)
  // Their lists do not answer until something has been deleted.
  control.setFaults({ faults: [{ kind: 'latency', ms: 600_000, on: parents }] })
  await startTestWorker(world)
  const resources = ['plans', 'customers', 'subscriptions'] as const
  const client = await connectTemporal()
  const run = await startRun({
    client,
    world,
    input: { resources: [...resources].toReversed() },
  })
  await until(() => urlsOf(world).some(isOfParent))
  const before = urlsOf(world).findIndex(isOfParent)

  const [[left], [gone, goneBy]] = [...names.customers] as unknown as [Named, Named]
  const [[plan]] = [...names.plans] as unknown as [Named]
  control.delete({ resource: 'customers', id: left })
  control.delete({ resource: 'customers', id: gone })
  for (const { id } of goneBy) control.delete({ resource: 'subscriptions', id })
  control.delete({ resource: 'plans', id: plan })
  control.setFaults({ faults: [] })
  control.landLateEffects()

  const report = await run.result()
  const after = urlsOf(world).slice(before)
  // What is looked up is not a read.
  const isOfRead = (url: string) => url.includes('/subscriptions/?') && !url.includes('customer=')
  expect(after.filter(isOfRead)).toEqual([])
  const isLookUp = (url: string) => /customers\/\?subscriptions=|subscriptions\/\?customer=/.test(url)
  expect(after.filter(isLookUp).length).toBeLessThanOrEqual(10)
  expect(report).toMatchObject({ verdict: 'proven' })
  expect(report.references).toMatchObject([
    {
      field: 'subscriptions.customer',
      checked: 240,
      complete: false,
      dangling: {
        ids: 2,
        reasons: { deleted: 1, unnamed: 1 },
        first: expect.arrayContaining([
          { id: left, from: expect.any(String), reason: 'deleted' },
          { id: gone, from: expect.any(String), reason: 'unnamed' },
        ]),
      },
    },
    {
      field: 'subscriptions.lines.plan',
      complete: false,
      dangling: { ids: 1, reasons: { deleted: 1 }, first: [{ id: plan, reason: 'deleted' }] },
    },
  ])
  expect((await manifestOf(report, 'subscriptions')).references).toEqual(report.references)
  // A step that is repeated finds what the first attempt noted.
  const asked = urlsOf(world).length
  await resetToPlan(client, run)
  const again = (await client.workflow.getHandle(run.workflowId).result()) as ExportReport
  expect(again.references).toEqual(report.references)
  expect(urlsOf(world).slice(asked)).toEqual([])
  const page = await readFile(report.page!, 'utf8')
  expect(page).toContain(`${left} (in `)
  expect(page).not.toContain('customer and plan is in this export')
})

test('references are not checked where their field is excluded, and nothing is claimed', async () => {
  const world = await createWorld({ counts })
  await startTestWorker(world)
  const report = await runExport(world, {
    resources: ['customers', 'subscriptions'],
    exclude: ['subscriptions.customer'],
  })
  const checked = 'the field is excluded'
  expect(report.references).toMatchObject([{ checked, complete: false, dangling: { ids: 0 } }])
  expect((await manifestOf(report, 'subscriptions')).references).toEqual(report.references)
  expect(await readFile(report.page!, 'utf8')).toContain(`not checked: ${checked}`)
})

test('nothing is claimed of a field that some records have in another form, nor of a list that is not proven', async () => {
  const world = await createWorld({ counts })
  await startTestWorker(world)
  world.sandbox.control.setFaults({
    faults: [
      { kind: 'wrongType', field: 'customer', value: ['several'], on: 'GET /subscriptions/' },
      { kind: 'wrongType', field: 'created', value: 'yesterday', on: 'GET /plans/' },
    ],
  })
  const report = await runExport(world)
  expect(report.references).toMatchObject([
    { to: 'customers', complete: false, dangling: { ids: 0 } },
    { to: 'plans', complete: false, dangling: { ids: 0 } },
  ])
  const page = await readFile(report.page!, 'utf8')
  expect(page).toContain('checked, 0 dangling')
  expect(page).not.toContain('is in this export')
})
