import { readFile } from 'node:fs/promises'
import { describe, expect, test } from 'vitest'
import type { SandboxOptions } from '../../../sandbox/options.ts'
import type { RecoveryProgress } from '../../../workflows/write-run/progress.ts'
import { asked, connectTemporal, createWorld, startTestWorker, until } from '../export/world.ts'
import { openChannel } from '../notify/receiver.ts'
import {
  begin,
  breakSome,
  failureOf,
  idsOf,
  quick,
  type RecoveryHandle,
  resume,
  resumesAsked,
  resumesDone,
  startRecovery,
  statusOf,
  well,
} from './world.ts'

const person = { by: 'Ana', why: 'the gateway works again' }

const waits = (run: RecoveryHandle, question: string) =>
  until(async () => (await statusOf(run)).waitingFor?.question === question)
const detailsOf = async (run: RecoveryHandle) =>
  (await run.query<{ currentDetails: string }>('__temporal_workflow_metadata')).currentDetails
const times = (asked: readonly string[]) =>
  [...Map.groupBy(asked, (id) => id).values()].map(({ length }) => length)

describe('a recovery started with an empty input', () => {
  test('shows what it would do, waits, and resumes only after somebody approved', async () => {
    const { world, client, ids } = await begin({ broken: 12 })
    breakSome(world, { ids: idsOf(world).slice(20, 23), reason: 'without_reference' })
    const run = await startRecovery({ client, world })
    await waits(run, 'approval')
    expect(resumesAsked(world)).toEqual([])
    const details = await detailsOf(run)
    expect(details).toContain(`**LIVE** ${world.workspace}`)
    expect(details).toContain('waiting for a person')
    expect(details).toMatch(/\| gateway_issue \|\s+12 \|/)
    expect(details).toMatch(/\| without_reference \|\s+3 \|/)
    expect(details).toContain('charge_payment')
    expect(details).toMatch(/To approve: .*`approve`.*To end it: .*`stop`/s)
    await run.executeUpdate('approve', { args: [person] })
    // What it looks like with the defaults takes minutes; from here on a stop ends it when the looks are done.
    await until(() => resumesDone(world).length >= 5)
    await run.signal('stop')
    await run.signal('stop')
    const result = await run.result()
    expect(result.counts.parked).toBe(3)
    expect(resumesDone(world).every((id) => ids.includes(id))).toBe(true)
    const report = JSON.parse(await readFile(result.files.report ?? '', 'utf8')) as object
    expect(report).toMatchObject({ decisions: [{ about: 'approval', ...person }] })
  })
})

describe('a recovery that people steer', () => {
  // A signal is heard within four seconds.
  const slowly = { faults: [{ kind: 'latency', ms: 150 }] } as const satisfies SandboxOptions

  test('ends on stop while it reads the list, with a report that says that nothing was resumed', async () => {
    const subscriptions = 900
    const { world, start } = await begin({
      broken: subscriptions,
      sandbox: { counts: { ...well.counts, subscriptions } },
    })
    const run = await start({ ...quick, requestsPerSecond: 0.2 })
    await until(async () => (await statusOf(run)).phase === 'reading the list')
    await until(() => asked(world) > 1)
    await run.signal('stop')
    expect(await run.result()).toMatchObject({
      ended: { how: 'stopped' },
      summary: expect.stringContaining('nothing was resumed: the list was not read'),
    })
  })

  test('in test mode ends on one stop, also while the service is down', async () => {
    const mode = 'test'
    const world = await createWorld({ ...well, testCounts: { subscriptions: 4 } })
    await startTestWorker(world, { BILLING_TEST_MODE: 'true' })
    breakSome(world, { ids: idsOf(world, mode), reason: 'gateway_issue', mode })
    const inTest = { ...world, taskQueue: `${world.taskQueue}-test` }
    const client = await connectTemporal()
    const run = await startRecovery({ client, world: inTest, input: { ...quick, approval: true } })
    await waits(run, 'approval')
    world.sandbox.control.setFaults({ faults: [{ kind: 'error', status: 503 }] })
    const before = asked(world)
    await run.executeUpdate('approve', { args: [person] })
    await until(() => asked(world) > before)
    await run.signal('stop')
    expect(await run.result()).toMatchObject({ ended: { how: 'stopped' }, counts: { notTried: 4 } })
  })

  test(
    'continues as new when its history grows long, and tells people of its end alone',
    { tags: ['long'] },
    async () => {
      const receiver = await openChannel()
      const env = { NOTIFY_URL: `all=${receiver.url}` }
      const { world, client, ids, start } = await begin({ broken: 40, sandbox: slowly, env })
      const run = await start({ ...quick, concurrency: 1, eventsPerExecution: 50 })
      for (let time = 1; time <= 3; time += 1) {
        const before = resumesAsked(world).length
        await run.executeUpdate('setLimits', { args: [{ requestsPerSecond: 100 + time }] })
        await until(() => resumesAsked(world).length > before + 1)
      }
      const handle = client.workflow.getHandle(run.workflowId)
      await until(async () => (await handle.describe()).runId !== run.firstExecutionRunId)
      world.sandbox.control.setFaults({ faults: [] })
      const { limits, run: name } = await handle.query<RecoveryProgress>('status')
      expect({ limits, name }).toMatchObject({ limits: { requestsPerSecond: 103 }, name: run.workflowId })
      // It still holds its place: what was continued has not ended.
      expect(await failureOf(await start(quick, `other of ${world.workspace}`))).toMatchObject({
        type: 'Busy',
      })
      expect(await run.result()).toMatchObject({ verdict: 'proven', counts: { done: 40 } })
      expect(times(resumesDone(world))).toEqual(ids.map(() => 1))
      await until(() => receiver.kinds().includes('ended'))
      expect(receiver.kinds()).toEqual(['ended'])
    },
  )

  test('refuses a second one in the same workspace, whatever its id', async () => {
    const { start } = await begin()
    const first = await start({ ...quick, approval: true })
    await waits(first, 'approval')
    const refused = await failureOf(await start(quick, 'typed by hand'))
    expect(refused).toMatchObject({ type: 'Busy', message: expect.stringContaining(first.workflowId) })
    // A dry run resumes nothing, so it may look on.
    const dry = await (await start({ dryRun: true })).result()
    expect(dry).toMatchObject({ verdict: 'dryRun', preview: { toResume: 20 } })
    await first.signal('stop')
    await first.result()
    expect(await (await start()).result()).toMatchObject({ verdict: 'proven' })
  })

  test('stops at the first 403, with a sentence and a report', async () => {
    const { world, start } = await begin({
      sandbox: { faults: [{ kind: 'error', status: 403, on: resume, from: 4 }] },
    })
    const run = await start({ ...quick, concurrency: 1 })
    const failure = await failureOf(run)
    expect(failure).toMatchObject({ type: 'RecoveryFailed', message: expect.stringContaining('not allowed') })
    expect(resumesAsked(world)).toHaveLength(4)
    expect(resumesDone(world)).toHaveLength(3)
    const page = await run.query<{ counts: Record<string, number> }>('report')
    expect(page.counts).toMatchObject({ parked: 0, notTried: 17 })
  })
})
