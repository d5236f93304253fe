import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { describe, expect, test } from 'vitest'
import type { Client } from '@temporalio/client'
import type { RecoveryInput } from '../../../core/recoveries/input.ts'
import type { Activities } from '../../../activities/index.ts'
import { asked, until, type World } from '../export/world.ts'
import { openChannel } from '../notify/receiver.ts'
import {
  once,
  putFile,
  quick as soon,
  reset as pressReset,
  retentionsCsv,
  startImport,
  timesOf,
} from '../import/world.ts'
import { begin, breakSome, quick, type RecoveryHandle, resume, resumesAsked, statusOf } from './world.ts'

const person = { by: 'Ana', why: 'it is night' }

const waitsFor = (run: RecoveryHandle, question: string) =>
  until(async () => (await statusOf(run)).waitingFor?.question === question)
/** All falls back, so that the breaker soon asks a person whether to go on. */
async function beginToFail(env: Record<string, string> = {}) {
  const shop = await begin({ broken: 14, sandbox: { faults: [{ kind: 'fallBack', on: resume }] }, env })
  const input = { ...quick, approval: true, canary: 0, attempts: 3, maxFailureShare: 0.5 } as const
  const start = (more: object = {}) => shop.start({ ...input, breakerWaits: ['20ms'], ...more })
  return { ...shop, start }
}

/** The execution that repeats a recovery after a Reset. */
async function reset({
  client,
  run,
  to,
}: {
  client: Client
  run: RecoveryHandle
  to: 'first' | 'last' | keyof Activities
}) {
  const { workflowId } = run
  return client.workflow.getHandle(workflowId, await pressReset({ client, workflowId, to })) as RecoveryHandle
}

/** Makes the state refuse to record what one person decides, until it is let go. */
async function holdDecisionsOf(name: string, { world, run }: { world: World; run: RecoveryHandle }) {
  const change = (statement: string) => {
    using database = new DatabaseSync(join(world.dataDir, 'state.db'))
    database.exec(statement)
  }
  change(`create trigger held before insert on notes when new.body like '%"by":"${name}"%'
    begin select raise(abort, 'held by the test'); end`)
  return {
    isBeingNoted: () =>
      until(async () => {
        const { raw } = await run.describe()
        return (raw.pendingActivities ?? []).some(
          ({ activityType, lastFailure }) => activityType?.name === 'noteDecision' && lastFailure,
        )
      }),
    letGo: () => change('drop trigger held'),
  }
}

test('a stop is heard although a new execution is about to begin and a word is still being noted', async () => {
  const { world, client, start } = await begin({ broken: 8 })
  const run = await start({ ...quick, approval: true, canary: 0, eventsPerExecution: 50 })
  await until(async () => (await statusOf(run)).waitingFor?.question === 'approval')
  const setRate = (requestsPerSecond: number) =>
    run.executeUpdate('setLimits', { args: [{ requestsPerSecond }] })
  for (let rate = 101; rate <= 106; rate += 1) await setRate(rate)
  await run.signal('pause')
  await run.executeUpdate('approve', { args: [person] })
  const held = await holdDecisionsOf('Eva', { world, run })
  const noted = run.executeUpdate('setLimits', { args: [{ requestsPerSecond: 107, by: 'Eva' }] })
  await held.isBeingNoted()
  await run.signal('unpause')
  await until(async () => (await statusOf(run)).phase === 'sending')
  await run.signal('stop')
  await until(async () => (await statusOf(run)).phase === 'stopping')
  held.letGo()
  await noted
  const result = await client.workflow.getHandle(run.workflowId).result()
  expect(result).toMatchObject({ ended: { how: 'stopped', why: 'stopped by a person' } })
  expect(resumesAsked(world)).toEqual([])
})

test('an approval that is noted late answers no later question, which nobody has seen', async () => {
  const { world, start } = await beginToFail()
  const run = await start()
  await waitsFor(run, 'approval')
  const held = await holdDecisionsOf(person.by, { world, run })
  const late = run
    .executeUpdate('approve', { args: [person] })
    .catch((error: { cause?: Error }) => error.cause)
  await held.isBeingNoted()
  await run.executeUpdate('approve', { args: [{ by: 'Eva', why: 'it is day' }] })
  await waitsFor(run, 'breaker')
  const before = resumesAsked(world).length
  held.letGo()
  expect(await late).toMatchObject({
    message: expect.stringMatching(/answered a question that is no longer open.*\.$/),
  })
  expect((await statusOf(run)).waitingFor).toMatchObject({ question: 'breaker' })
  expect(resumesAsked(world)).toHaveLength(before)
  await run.executeUpdate('approve', { args: [person] })
  await until(() => resumesAsked(world).length > before)
  await run.signal('stop')
  await run.result()
})

test('people are notified again of a question that a Reset repeats, and only once if it keeps waiting', async () => {
  const receiver = await openChannel()
  const { client, start } = await beginToFail({ NOTIFY_URL: receiver.url })
  const told = (number: number) =>
    until(() => receiver.kinds().filter((kind) => kind === 'approval').length === number)
  const first = await start({ eventsPerExecution: 50 })
  await waitsFor(first, 'approval')
  await told(1)
  const run = await reset({ client, run: first, to: 'first' })
  await told(2)
  await waitsFor(run, 'approval')
  for (let rate = 101; rate <= 107; rate += 1)
    await run.executeUpdate('setLimits', { args: [{ requestsPerSecond: rate }] })
  await run.executeUpdate('approve', { args: [person] })
  // The execution that continues it asks about the breaker.
  const latest = client.workflow.getHandle(run.workflowId) as RecoveryHandle
  await told(3)
  await waitsFor(latest, 'breaker')
  expect((await latest.describe()).runId).not.toBe((await run.describe()).runId)
  const waiting = await reset({ client, run: latest, to: 'last' })
  await waitsFor(waiting, 'breaker')
  await waiting.signal('stop')
  expect(await waiting.result()).toMatchObject({ ended: { how: 'stopped' } })
  await told(3)
})

test(
  'an import and a recovery under one typed id have names of their own, whichever came first',
  { tags: ['long'] },
  async () => {
    const { world, client, ids, start } = await begin({ broken: 4 })
    const name = `by hand ${world.workspace}`
    const input = { kind: 'retentions' as const, ...soon }
    const sheet = async (from: number) => ({
      ...input,
      file: await putFile(world, retentionsCsv(3, { from })),
    })
    const imported = await (await startImport({ client, world, name, input: await sheet(1) })).result()
    const recovered = await (await start(quick, name)).result()
    const other = await (await startImport({ client, world, name, input: await sheet(4) })).result()
    breakSome(world, { ids, reason: 'gateway_issue' })
    const again = await (await start(quick, name)).result()
    expect([imported, recovered, other, again].map(({ run, counts }) => [run, counts.done])).toEqual([
      [name, 3],
      [`${name}.2`, 4],
      [`${name}.3`, 3],
      [`${name}.4`, 4],
    ])
    // The same rows are the run that had them, past the names of the others.
    const same = await (await startImport({ client, world, name, input: await sheet(4) })).result()
    expect(same).toMatchObject({ run: `${name}.3`, counts: { done: 3 } })
    expect(timesOf(world, 'retentions', 6)).toEqual(once(6))
  },
)

test(
  'no subscription is resumed more often than attempts say, whatever is done to its runs',
  { tags: ['long'] },
  async () => {
    const faults = [
      { kind: 'fallBack', on: resume },
      { kind: 'reset', effect: 'done', on: resume, rate: 0.3 },
    ] as const
    const slowly = { kind: 'latency', ms: 150 } as const
    const { world, client, ids, start } = await begin({ broken: 8, sandbox: { faults: [...faults, slowly] } })
    const name = `whatever ${world.workspace}`
    const input = { ...quick, canary: 0, attempts: 3, concurrency: 1 } as const
    const isSending = async (run: RecoveryHandle) => {
      await until(async () => (await statusOf(run)).phase === 'sending')
      const before = resumesAsked(world).length
      await until(() => resumesAsked(world).length > before)
    }
    const terminated = await start(input, name)
    await isSending(terminated)
    await terminated.terminate()
    const first = await start(input, name)
    await isSending(first)
    const again = await reset({ client, run: first, to: 'first' })
    await isSending(again)
    await again.signal('stop')
    expect(await again.result()).toMatchObject({ ended: { how: 'stopped' } })
    const last = await start(input, name)
    await isSending(last)
    world.sandbox.control.setFaults({ faults: [...faults] })
    await (await reset({ client, run: last, to: 'last' })).result()
    const { outcomes } = await (await start(input, name)).result()
    expect(outcomes).toEqual({ attemptsUsedUp: 8 })
    const often = Map.groupBy(resumesAsked(world), (id) => id)
    expect(ids.map((id) => often.get(id)?.length)).toEqual(ids.map(() => 3))
  },
)

describe('a recovery that is reset to before its first resume', () => {
  /** All are resumed, and none of them has been looked up. */
  async function beginResumed(input: RecoveryInput) {
    const shop = await begin({ broken: 6 })
    const run = await shop.start({ ...quick, canary: 0, verifyAfter: '3s', approval: true, ...input })
    await waitsFor(run, 'approval')
    await run.executeUpdate('approve', { args: [person] })
    await until(() => resumesAsked(shop.world).length === 6)
    return { ...shop, run }
  }

  const isStoppedAtQuestion = async (run: RecoveryHandle) => {
    await waitsFor(run, 'approval')
    await run.signal('stop')
  }

  test.each<[string, RecoveryInput, string, typeof isStoppedAtQuestion | undefined]>([
    ['stopped at the question', {}, 'stopped by a person', isStoppedAtQuestion],
    ['not approved again in time', { approvalWait: '1s' }, 'nobody approved in time', undefined],
  ])('looks up what it had resumed where it is %s', { tags: ['long'] }, async (_, input, why, meanwhile) => {
    const { world, client, ids, run } = await beginResumed(input)
    const again = await reset({ client, run, to: 'first' })
    await meanwhile?.(again)
    expect(await again.result()).toMatchObject({ ended: { how: 'stopped', why }, outcomes: { recovered: 6 } })
    expect(resumesAsked(world).toSorted()).toEqual(ids.toSorted())
  })

  // The Reset repeats the stop, too.
  test.each<keyof Activities>(['stageRun', 'sendRun'])(
    'looks up what it had resumed where it was stopped: to before %s',
    { tags: ['long'] },
    async (to) => {
      const { world, client, ids, run } = await beginResumed({})
      await run.signal('stop')
      await until(async () => (await statusOf(run)).phase === 'looking up')
      const result = await (await reset({ client, run, to })).result()
      expect(result).toMatchObject({
        ended: { how: 'stopped', why: 'stopped by a person' },
        outcomes: { recovered: 6 },
      })
      expect(resumesAsked(world).toSorted()).toEqual(ids.toSorted())
    },
  )
})

test('a rate that is changed while the list is read holds for the reading too, and no more are in flight than a worker’s memory holds', async () => {
  const sandbox = { counts: { customers: 20, subscriptions: 900, plans: 3, retentions: 0, orders: 0 } }
  const { world, start } = await begin({ broken: 900, sandbox })
  const run = await start({ ...quick, dryRun: true, requestsPerSecond: 0.2 })
  await until(async () => (await statusOf(run)).phase === 'reading the list')
  await until(() => asked(world) > 1)
  await expect(run.executeUpdate('setLimits', { args: [{ concurrency: 1e9 }] })).rejects.toMatchObject({
    cause: { message: expect.stringContaining('concurrency must be a whole number') },
  })
  await run.executeUpdate('setLimits', { args: [{ requestsPerSecond: 200, ...person }] })
  const from = Date.now()
  expect(await run.result()).toMatchObject({ preview: { toResume: 500, notResumed: { notTried: 400 } } })
  // At the rate of the start the ten requests would have taken 50 seconds.
  expect(Date.now() - from).toBeLessThan(30_000)
})

test('refuses to be a cron with a sentence, because its second run would do nothing', async () => {
  const { world, client } = await begin({ broken: 1 })
  const options = { workflowId: `by cron ${world.workspace}`, taskQueue: world.taskQueue, args: [] }
  const cron = await client.workflow.start('recoverSubscriptions', { ...options, cronSchedule: '@every 1s' })
  const first = client.workflow.getHandle(cron.workflowId, cron.firstExecutionRunId)
  const failures = async () =>
    ((await first.fetchHistory()).events ?? []).flatMap(
      (event) => event.workflowExecutionFailedEventAttributes?.failure?.message ?? [],
    )
  await until(async () => (await failures()).length > 0)
  expect(await failures()).toEqual([expect.stringContaining('use a schedule')])
  await client.workflow.getHandle(cron.workflowId).terminate()
  expect(asked(world)).toBe(0)
})

test('a recovery without input resumes when Temporal retries it', { tags: ['long'] }, async () => {
  const { world, client } = await begin({ broken: 2 })
  const run = await client.workflow.start('recoverSubscriptions', {
    workflowId: `by retry ${world.workspace}`,
    taskQueue: world.taskQueue,
    args: [],
    workflowRunTimeout: '5s',
    // Without a limit: on a slow machine, an execution may end before it is seen to wait.
    retry: { initialInterval: '10ms' },
  })
  const latest = client.workflow.getHandle(run.workflowId) as RecoveryHandle
  await until(async () => (await latest.describe()).runId !== run.firstExecutionRunId)
  await until(async () => (await statusOf(latest)).waitingFor?.question === 'approval')
  expect(resumesAsked(world)).toEqual([])
  await latest.terminate()
})
