import type { Client } from '@temporalio/client'
import { describe, expect, test } from 'vitest'
import type { ImportInput } from '../../../core/imports/input.ts'
import type { ImportProgress } from '../../../workflows/write-run/progress.ts'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import {
  addonsCsv,
  once,
  posts,
  putFile,
  quick,
  reset,
  retentionsCsv,
  startImport,
  timesOf,
} from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 20, orders: 0 }
const slowly = { kind: 'latency', ms: 60, jitterMs: 40 } as const
const sent = async (world: World, more: number) => {
  const from = posts(world)
  await until(() => posts(world) >= from + more)
}

async function startSlowly(options: {
  world: World
  client: Client
  rows: number
  input?: Partial<ImportInput>
}) {
  const { world, client, rows, input } = options
  const file = await putFile(world, retentionsCsv(rows))
  const settled = { verifyAfter: 0.3, maxFailureShare: 1, canary: 0 }
  return startImport({ client, world, input: { kind: 'retentions', file, ...settled, ...input } })
}

describe('the Reset button', () => {
  test(
    'of a run that is sending continues from the ledger, and of one that has ended sends nothing',
    { tags: ['long'] },
    async () => {
      const world = await createWorld({ counts, faults: [slowly] })
      await startTestWorker(world)
      const client = await connectTemporal()
      const { workflowId } = await startSlowly({ world, client, rows: 150 })
      await sent(world, 30)
      await reset({ client, workflowId })
      await sent(world, 30)
      // The step that sends is repeated under an execution that did not open the import.
      await reset({ client, workflowId, to: 'last' })
      const result = await client.workflow.getHandle(workflowId).result()
      expect(result).toMatchObject({ run: workflowId, verdict: 'proven', counts: { done: 150 } })
      expect(timesOf(world, 'retentions', 150)).toEqual(once(150))

      const before = posts(world)
      await reset({ client, workflowId })
      const again = await client.workflow.getHandle(workflowId).result()
      expect(again).toMatchObject({ run: workflowId, verdict: 'proven', counts: { done: 150 } })
      expect(posts(world)).toBe(before)
    },
  )

  test('does not repeat what a person said of a row before it was sent again', async () => {
    const on = 'POST /addons/'
    const world = await createWorld({
      counts,
      faults: [{ kind: 'reset', effect: 'none', on, requests: [1] }],
    })
    await startTestWorker(world)
    const client = await connectTemporal()
    const file = await putFile(world, addonsCsv(25))
    const input = { kind: 'addons', file, ...quick, canary: 2, confirmCanary: true, concurrency: 1 } as const
    const run = await startImport({ client, world, input })
    const status = () => run.query<ImportProgress>('status')
    await until(async () => (await status()).waitingFor?.question === 'canary')
    const [row] = (await status()).parkedRows ?? []
    const person = { by: 'Ana', why: 'not in the dashboard' }
    await run.executeUpdate('resolve', { args: [{ row, absent: true, ...person }] })
    world.sandbox.control.setFaults({ faults: [{ kind: 'reset', effect: 'done', on }] })
    await run.executeUpdate('approve', { args: [person] })
    expect(await run.result()).toMatchObject({ counts: { done: 1, parked: 24 } })
    world.sandbox.control.setFaults({ faults: [] })
    await reset({ client, workflowId: run.workflowId })
    const result = await client.workflow.getHandle(run.workflowId).result()
    expect(result).toMatchObject({ counts: { done: 1, parked: 24 } })
    expect(timesOf(world, 'addons', 25)).toEqual(once(25))
  })
})

describe('a gateway that has lost its backend', () => {
  test.each([
    ['pages', true],
    ['JSON', false],
  ])(
    'and answers 404 in %s for a while makes no double and no false proof',
    { tags: ['long'] },
    async (_, html) => {
      const world = await createWorld({ counts, faults: [{ ...slowly, ms: 20 }] })
      await startTestWorker(world)
      const client = await connectTemporal()
      const input = { maxFailureShare: 0.5, breakerWaits: [0.5, 1, 2] }
      const run = await startSlowly({ world, client, rows: 100, input })
      await sent(world, 30)
      world.sandbox.control.addFault({ fault: { kind: 'notFound', html, forSeconds: 1.5 } })
      const again = async () => {
        // If a read got this answer too, the run ended with what it knows, and the same start resumes it.
        world.sandbox.control.setFaults({ faults: [] })
        const start = { kind: 'retentions', file: 'inbox/rows.csv', ...quick, ...input, canary: 0 } as const
        return (await startImport({ client, world, input: start, name: run.workflowId })).result()
      }
      const result = await run.result().catch(again)
      const times = timesOf(world, 'retentions', 100)
      expect(times.filter((count) => count > 1)).toEqual([])
      expect(times.filter((count) => count === 1)).toHaveLength(result.counts.done)
      expect(result.counts.done + result.counts.rejected).toBe(100)
      expect(result.audit).toMatchObject({ found: result.counts.done, reasons: [] })
      // A page is not an answer of the service: those rows were looked up, and sent when it was back.
      if (html) expect(result).toMatchObject({ verdict: 'proven', counts: { done: 100 } })
    },
  )
})

test('of two imports at once with one row in common only one sends it', async () => {
  const world = await createWorld({ counts })
  await startTestWorker(world)
  const client = await connectTemporal()
  const first = {
    kind: 'retentions',
    file: await putFile(world, retentionsCsv(40), 'a.csv'),
    ...quick,
  } as const
  const second = { ...first, file: await putFile(world, retentionsCsv(40, { from: 40 }), 'b.csv') }
  const runs = await Promise.all([first, second].map((input) => startImport({ client, world, input })))
  const ends = await Promise.allSettled(runs.map((run) => run.result()))
  const refused = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as Error] : []))
  expect(refused).toMatchObject([{ cause: { type: 'RowsTaken' } }])
  const left = ends[0]?.status === 'rejected' ? first : second
  const result = await (await startImport({ client, world, input: { ...left, done: 'skip' } })).result()
  expect(result).toMatchObject({ verdict: 'proven', counts: { done: 40, skipped: 0 } })
  expect(timesOf(world, 'retentions', 79)).toEqual(once(79))
})

test('a rehearsal in test mode takes nothing from the live run of the same file', async () => {
  const world = await createWorld({ counts, testCounts: { customers: 1, retentions: 0 } })
  const client = await connectTemporal()
  const file = await putFile(world, retentionsCsv(30))
  const input = { kind: 'retentions', file, ...quick } as const
  const inMode = async (test: boolean) => {
    const worker = await startTestWorker(world, { BILLING_TEST_MODE: String(test) })
    const taskQueue = test ? `${world.taskQueue}-test` : world.taskQueue
    const result = await (await startImport({ client, world: { ...world, taskQueue }, input })).result()
    await worker.stop()
    return result
  }
  expect(await inMode(true)).toMatchObject({ verdict: 'proven', counts: { done: 30 } })
  expect(timesOf(world, 'retentions', 30)).toEqual(once(30).map(() => 0))
  expect(world.sandbox.control.ids({ resource: 'retentions', mode: 'test' })).toHaveLength(30)
  expect(await inMode(false)).toMatchObject({ verdict: 'proven', counts: { done: 30 } })
  expect(timesOf(world, 'retentions', 30)).toEqual(once(30))
  expect(world.sandbox.control.ids({ resource: 'retentions', mode: 'test' })).toHaveLength(30)
})
