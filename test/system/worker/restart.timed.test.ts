import { expect, test } from 'vitest'
import {
  asked,
  connectTemporal,
  createWorld,
  startCommand,
  startRun,
  until,
  type World,
} from '../export/world.ts'
import { putFile, quick as quickImport, retentionsCsv, startImport } from '../import/world.ts'

type Client = Awaited<ReturnType<typeof connectTemporal>>

const rows = 120
const customers = 4_000

const requestsOf = (world: World, part: string) =>
  world.sandbox.control.requests().filter(({ method, url }) => `${method} ${url}`.startsWith(part))

/** Starts a run; what it gives waits for its end, and looks that nothing was done twice. */
type Start = (world: World, client: Client) => Promise<() => Promise<string>>

const startExport: Start = async (world, client) => {
  const run = await startRun({ client, world, input: { resources: ['customers'] } })
  return async () => {
    const report = await run.result()
    // 1.16 requests a page, the looks before and after, and what was in flight at the restart.
    expect(requestsOf(world, 'GET /customers/').length).toBeLessThan((1.16 * customers) / 100 + 12)
    return report.verdict
  }
}

const startRetentions: Start = async (world, client) => {
  const file = await putFile(world, retentionsCsv(rows))
  const input = { ...quickImport, kind: 'retentions', file, canary: 0 } as const
  const run = await startImport({ client, world, input })
  return async () => {
    const { verdict, counts } = await run.result()
    expect(counts).toMatchObject({ done: rows, unknown: 0, parked: 0 })
    expect(requestsOf(world, 'POST /retentions/')).toHaveLength(rows)
    return verdict
  }
}

/** A run that reads and one that sends, with the requests of which one is on its way when the worker is told to end. */
test.each<[string, string, Start]>([
  ['an export', 'GET /customers/', startExport],
  ['an import', 'POST /retentions/', startRetentions],
])(
  'a worker that is told to end in the middle of %s cuts off no write, and its successor is at work within 10 s',
  { tags: ['long'] },
  async (_kind, requests, start) => {
    const world = await createWorld({
      counts: { customers, subscriptions: 0, plans: 3, retentions: 0, orders: 0 },
      faults: [{ kind: 'latency', ms: 150, where: 'after' }],
    })
    const client = await connectTemporal()
    const worker = startCommand(world, ['worker'])
    await worker.says('listening')
    const end = await start(world, client)
    const before = asked(world)
    const isOneOnItsWay = () => requestsOf(world, requests).some(({ status }) => status === undefined)
    await until(() => asked(world) > before + 20 && isOneOnItsWay())
    const toldAt = performance.now()
    worker.child.kill('SIGTERM')
    expect((await worker.ended).code).toBe(0)
    // Every write has its answer. A read drops the windows that are on their way, and asks for them again.
    const writes = world.sandbox.control.requests().filter(({ method }) => method !== 'GET')
    expect(writes.filter(({ status }) => status === undefined)).toEqual([])
    const atTheEnd = asked(world)
    await startCommand(world, ['worker']).says('listening')
    await until(() => asked(world) > atTheEnd)
    const seconds = (performance.now() - toldAt) / 1000
    console.log(`at work again after ${seconds.toFixed(1)} s`)
    expect(seconds).toBeLessThan(10)
    // Nothing is timed from here on.
    world.sandbox.control.setFaults({ faults: [] })
    expect(await end()).toBe('proven')
  },
)
