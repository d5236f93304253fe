import { spawn } from 'node:child_process'
import { once as onceEmitted } from 'node:events'
import { hostname } from 'node:os'
import { fileURLToPath } from 'node:url'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { callCommand } from '../command-line/call-command.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'
import {
  connectTemporal,
  createWorld,
  startCommand,
  startTestWorker,
  until,
  type World,
} from '../export/world.ts'
import { scrape, sumOf } from '../worker/scrape.ts'
import { once, putFile, quick, retentionsCsv, startImport, timesOf } from '../import/world.ts'

const empty = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }

let postgres: Postgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
})
afterAll(() => postgres.close())

test(
  'an import whose state is on PostgreSQL sends each row once, and is proven',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: empty })
    const worker = await startTestWorker(world, { CONNECTOR_STATE_URL: url })
    const client = await connectTemporal()
    const file = await putFile(world, retentionsCsv(60))
    const run = await startImport({ client, world, input: { kind: 'retentions', file, ...quick } })
    expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 60 } })
    expect(timesOf(world, 'retentions', 60)).toEqual(once(60))
    const stored = await askPostgres(url, `select id from "connector_${world.workspace}".store`)
    expect(stored).toEqual([{ id: worker.identity.store }])
    const env = { CONNECTOR_STATE_URL: url }
    const report = await callCommand(world, ['report', run.workflowId, '--json'], { env })
    expect(report).toMatchObject({ code: 0, stdout: expect.stringContaining('"done":60') })
    const repaired = await callCommand(world, ['state', 'repair'], { env })
    expect(repaired).toMatchObject({ code: 2, stderr: expect.stringContaining('is in use by the worker') })
    const seen = await askPostgres(url, `select worker from "connector_${world.workspace}".workers`)
    expect(seen).toEqual([{ worker: expect.stringContaining(`${process.pid}@${hostname()} `) }])
  },
)

/** A worker in a process of its own that shares the data folder with others. */
async function startSharingWorker(world: World) {
  const program = fileURLToPath(new URL('probes/sharing-worker.ts', import.meta.url))
  const env = {
    PATH: process.env['PATH'],
    ...world.env,
    CONNECTOR_STATE_URL: url,
    BILLING_SETTLE_SECONDS: '0.5',
  }
  const child = spawn(process.execPath, [program], { env, stdio: ['ignore', 'ignore', 'pipe'] })
  onTestFinished(() => void child.kill('SIGKILL'))
  let heard = ''
  child.stderr.setEncoding('utf8').on('data', (text: string) => (heard += text))
  await until(() => heard.includes('listening') || child.exitCode !== null)
  expect(heard).toContain('listening')
  return child
}

test(
  'of two workers on one state, the other finishes an import when the one that sends is killed',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: empty })
    world.sandbox.control.addFault({ fault: { kind: 'latency', ms: 20 } })
    const workers = await Promise.all([startSharingWorker(world), startSharingWorker(world)])
    const client = await connectTemporal()
    const file = await putFile(world, retentionsCsv(150))
    const run = await startImport({ client, world, input: { kind: 'retentions', file, ...quick } })
    const sent = () => timesOf(world, 'retentions', 150).filter((times) => times > 0).length
    await until(() => sent() > 20)
    const handle = client.workflow.getHandle(run.workflowId)
    const { raw } = await handle.describe()
    const identity = raw.pendingActivities?.[0]?.lastWorkerIdentity ?? ''
    const sender = workers.find(({ pid }) => identity.includes(` ${pid}@`))!
    const names = workers.map(({ pid }) => `${pid}@${hostname()}`)
    const env = { CONNECTOR_STATE_URL: url }
    const status = (await callCommand(world, ['status', run.workflowId], { env })).stdout
    expect(status).toContain(`Worked on by ${sender.pid}@${hostname()}.`)
    expect(status).toMatch(/Workers: \d+@\S+ \(seen \d s ago\) and \d+@\S+ \(seen \d s ago\)\./)
    for (const name of names) expect(status).toContain(name)
    const exited = onceEmitted(sender, 'exit')
    sender.kill('SIGKILL')
    await exited
    expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 150 } })
    expect(timesOf(world, 'retentions', 150)).toEqual(once(150))
  },
)

test(
  'Current Details of an import name the worker of the last part, and the workers that are alive',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts: empty })
    await Promise.all([startSharingWorker(world), startSharingWorker(world)])
    const client = await connectTemporal()
    const file = await putFile(world, retentionsCsv(25))
    const input = { kind: 'retentions', file, ...quick, confirmCanary: true } as const
    const run = await startImport({ client, world, input })
    // It waits for an approval after its first part.
    await until(async () => (await run.query<{ waitingFor?: object }>('status')).waitingFor !== undefined)
    const { workers } = await run.query<{ workers?: { worker: string; alive: string[] } }>('status')
    expect(workers?.alive).toHaveLength(2)
    expect(workers?.alive).toContain(workers?.worker)
    const { currentDetails } = await run.query<{ currentDetails: string }>('__temporal_workflow_metadata')
    expect(plain(currentDetails)).toContain(`Last part by ${workers?.worker}.`)
    expect(plain(currentDetails)).toContain(`Workers alive then: ${workers?.alive.join(', ')}.`)
    await run.terminate()
  },
)

/** Without the marks of Markdown. */
const plain = (text: string) => text.replaceAll('\\', '').replaceAll('*', '')

test(
  'a worker warns at its start of a short timeout, and is not ready while PostgreSQL is away',
  { tags: ['long'] },
  async () => {
    const own = await startPostgres()
    onTestFinished(() => own.close())
    const database = await own.createDatabase()
    await askPostgres(own.toUrl('postgres'), `create role hasty superuser login password 'hasty'`)
    await askPostgres(own.toUrl('postgres'), `alter role hasty set lock_timeout = '900ms'`)
    const world = await createWorld({ counts: { plans: 1 } })
    const stateUrl = own.toUrl(new URL(database).pathname.slice(1), 'hasty', 'hasty')
    const env = { CONNECTOR_STATE_URL: stateUrl, CONNECTOR_METRICS_ADDRESS: '127.0.0.1:0' }
    const worker = startCommand(world, ['worker'], { env })
    await worker.says('/metrics')
    const [, address = ''] = /(http:[^\s"]+)\/metrics/.exec(worker.texts.stderr) ?? []
    expect(worker.texts.stderr).toMatch(/"level":"warn","message":"The lock_timeout of the user in .* 900 ms/)
    const look = async () => {
      const { checks } = (await (await fetch(`${address}/readyz`)).json()) as {
        checks: Record<string, { ok: boolean; message: string }>
      }
      return { state: checks['state'], up: sumOf(await scrape(address), 'billing_connector_state_up') }
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
  },
)
