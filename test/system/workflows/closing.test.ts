import type { Client } from '@temporalio/client'
import { NativeConnection, Worker } from '@temporalio/worker'
import { expect, inject, onTestFinished, test } from 'vitest'
import { planOf } from '../../../scripts/runs/run-files.ts'
import { createWorld, connectTemporal, startTestWorker, until, type World } from '../export/world.ts'
import { addonsCsv, putFile, quick, startImport } from '../import/world.ts'
import { breakSome, idsOf, quick as quickRecovery, startRecovery, well } from '../recovery/world.ts'
import type { Answer, callStep } from '../security/probes/call-step.ts'

/** Calls steps as a workflow of its own, so that the test decides which ones are under way together. */
async function startCaller(client: Client, world: World) {
  const connection = await NativeConnection.connect({ address: inject('temporalAddress') })
  const taskQueue = `caller-${world.workspace}`
  const worker = await Worker.create({
    connection,
    taskQueue,
    workflowsPath: new URL('../security/probes/call-step.ts', import.meta.url).pathname,
  })
  const ran = worker.run()
  onTestFinished(async () => {
    worker.shutdown()
    await ran
    await connection.close()
  })
  let calls = 0
  return async (step: string, input: object): Promise<Answer | undefined> => {
    calls += 1
    const call = { taskQueue: world.taskQueue, step, inputs: [input] }
    const workflowId = `call-${world.workspace}-${calls}`
    const [answer] = await client.workflow.execute<typeof callStep>('callStep', {
      workflowId,
      taskQueue,
      args: [call],
    })
    return answer
  }
}

const slowly = [{ kind: 'latency', ms: 100 }] as const

const jobs = {
  async import(client: Client) {
    const counts = { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 }
    const world = await createWorld({ counts, faults: [...slowly] })
    const file = await putFile(world, addonsCsv(200))
    const input = { kind: 'addons', file, ...quick, approval: true } as const
    return { world, run: await startImport({ client, world, input }) }
  },
  async recovery(client: Client) {
    const world = await createWorld({ ...well, faults: [...slowly] })
    breakSome(world, { ids: idsOf(world), reason: 'gateway_issue' })
    const input = { ...quickRecovery, approval: true, canary: 0 }
    return { world, run: await startRecovery({ client, world, input }) }
  },
} as const

async function startWaiting(job: keyof typeof jobs) {
  const client = await connectTemporal()
  const { world, run } = await jobs[job](client)
  await startTestWorker(world, { BILLING_SETTLE_SECONDS: '0.05', BILLING_CONCURRENCY: '2' })
  await until(async () => (await run.query<{ waitingFor?: object }>('status')).waitingFor !== undefined)
  const plan = await planOf({ state: { folder: world.dataDir } }, run.workflowId)
  const ref = { run: run.workflowId, identity: plan!.identity }
  const posts = () => world.sandbox.control.requests().filter(({ method }) => method === 'POST').length
  const segment = { ...ref, seconds: 60, breakers: {}, claims: 0, limits: {} }
  return { run, ref, segment, posts, call: await startCaller(client, world) }
}

test.each([
  ['closeRun', { how: 'stopped' }],
  ['skipRemaining', { why: 'a canary failed' }],
] as const)(
  'a recovery sends nothing more once %s has ended, though the attempt that sends was not told to stop',
  { tags: ['long'] },
  async (close, end) => {
    const { run, ref, segment, posts, call } = await startWaiting('recovery')
    const sending = call('sendRun', segment)
    await until(() => posts() > 4)
    expect(await call(close, { ...ref, ...end })).not.toHaveProperty('refused')
    const sent = posts()
    expect(await sending).toMatchObject({ result: { ended: 'stopped' } })
    expect(posts()).toBe(sent)
    await run.terminate()
  },
)

test('the changes of an import are sent by no step of another run', { tags: ['long'] }, async () => {
  const { run, segment, posts, call } = await startWaiting('import')
  expect(await call('sendRun', segment)).toMatchObject({
    refused: expect.stringContaining('is already doing this'),
  })
  expect(posts()).toBe(0)
  await run.terminate()
})
