import { expect, test } from 'vitest'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import { once, posts, putFile, quick, reset, retentionsCsv, startImport, timesOf } from './world.ts'

const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 20, orders: 0 }
const slowly = { kind: 'latency', ms: 60, jitterMs: 40 } as const
const sent = async (world: World, more: number) => {
  const from = posts(world)
  await until(() => posts(world) >= from + more)
}

test(
  'the Reset button of a run that is sending continues from the ledger, and of one that has ended sends nothing',
  { tags: ['long'] },
  async () => {
    const world = await createWorld({ counts, faults: [slowly] })
    await startTestWorker(world)
    const client = await connectTemporal()
    const file = await putFile(world, retentionsCsv(150))
    const settled = { verifyAfter: 0.3, maxFailureShare: 1, canary: 0 }
    const input = { kind: 'retentions', file, ...settled } as const
    const { workflowId } = await startImport({ client, world, input })
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
