import { expect, onTestFinished, test } from 'vitest'
import { askPostgres, startPostgres } from '../../system/destinations/postgres-server.ts'
import { connectTemporal, createWorld, startCommand, until } from '../../system/export/world.ts'
import { once, quick, retentionsCsv, startImport, timesOf } from '../../system/import/world.ts'
import { scrape, sumOf } from '../../system/worker/scrape.ts'
import { createFleet } from './fleet-world.ts'

const empty = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }

const fleet = createFleet()
const { fleetOf, startMachine, openStore } = fleet
const slow = { BILLING_SETTLE_SECONDS: '0.5' }

test('of two workers on one state, the other resumes an import within seconds of a SIGKILL of the one that sends, and finishes it', async () => {
  const world = await createWorld({ counts: empty })
  world.sandbox.control.addFault({ fault: { kind: 'latency', ms: 20 } })
  const workers = await Promise.all([startMachine(world, slow), startMachine(world, slow)])
  const client = await connectTemporal()
  const file = 'inbox/rows.csv'
  await openStore(world).create(file, retentionsCsv(150))
  const run = await startImport({ client, world, input: { kind: 'retentions', file, ...quick } })
  const sent = () => timesOf(world, 'retentions', 150).filter((times) => times > 0).length
  await until(() => sent() > 20)
  const handle = client.workflow.getHandle(run.workflowId)
  const { raw } = await handle.describe()
  const identity = raw.pendingActivities?.[0]?.lastWorkerIdentity ?? ''
  const sender = workers.find(({ child }) => identity.includes(` ${child.pid}@`))!
  await sender.lose()
  const killed = performance.now()
  const atWork = async () => (await handle.describe()).raw.pendingActivities?.[0]?.lastWorkerIdentity
  await until(async () => ((await atWork()) ?? identity) !== identity)
  // 5 s without a heartbeat, a second until that is noticed, a retry after 1 s; three times as long on a busy machine.
  expect(performance.now() - killed).toBeLessThan(24_000)
  expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 150 } })
  expect(timesOf(world, 'retentions', 150)).toEqual(once(150))
})

test('a worker warns at its start of a short timeout, and is not ready while PostgreSQL is away', async () => {
  const own = await startPostgres()
  onTestFinished(() => own.close())
  const database = await own.createDatabase()
  await askPostgres(own.toUrl('postgres'), `create role hasty superuser login password 'hasty'`)
  await askPostgres(own.toUrl('postgres'), `alter role hasty set lock_timeout = '900ms'`)
  const world = await createWorld({ counts: { plans: 1 } })
  const stateUrl = own.toUrl(new URL(database).pathname.slice(1), 'hasty', 'hasty')
  const env = { ...fleetOf(world), CONNECTOR_STATE_URL: stateUrl, CONNECTOR_METRICS_ADDRESS: '127.0.0.1:0' }
  const worker = startCommand(world, ['worker'], { env })
  await worker.says('/metrics')
  const [, address = ''] = /(http:[^\s"]+)\/metrics/.exec(worker.texts.stderr) ?? []
  expect(worker.texts.stderr).toMatch(/"level":"warn","message":"The lock_timeout of the user in .* 900 ms/)
  const look = async () => {
    const { checks } = (await (await fetch(`${address}/readyz`)).json()) as {
      checks: Record<string, { ok: boolean; message: string }>
    }
    return { state: checks['state'], up: sumOf(await scrape(address), 'connector_state_up') }
  }
  const fine = { ok: true, message: expect.stringMatching(/^the schema .* answers; 1 worker uses it$/) }
  expect(await look()).toEqual({ state: fine, up: 1 })
  own.killAll()
  expect(await look()).toEqual({
    state: { ok: false, message: expect.stringMatching(/^PostgreSQL does not answer for the schema/) },
    up: 0,
  })
  await own.restart()
  await until(async () => (await look()).up === 1)
  expect(await look()).toEqual({ state: fine, up: 1 })
})
