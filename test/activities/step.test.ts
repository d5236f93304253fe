import { Client, Connection } from '@temporalio/client'
import { MockActivityEnvironment } from '@temporalio/testing'
import { afterEach, expect, test, vi } from 'vitest'
import { createSteps, type StepContext } from '../../activities/step.ts'
import { StateAwayError } from '../../core/state/errors.ts'
import { type Trouble, describeTrouble } from '../../core/runs/view/trouble.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import { cached } from '../../core/storage/cached.ts'

const identity = { workspace: 'acc_1', baseUrl: 'http://127.0.0.1', mode: 'test', store: 's' } as const
const open = (info = {}) =>
  new MockActivityEnvironment(info, { client: new Client({ connection: Connection.lazy() }) })
const { step } = createSteps({
  dataDir: '/nowhere',
  shared: cached('/nowhere'),
  outDirs: [],
  identity,
  state: {} as never,
  searchAttributes: () => Promise.resolve([]),
})

afterEach(() => vi.useRealTimers())

/** Lets no time pass but that of `vi.advanceTimersByTimeAsync`, for what a step does every second. */
const stopTheClock = () => vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] })

/** Runs a step as Temporal does, after an attempt with this last heartbeat; gives the heartbeats of this one. */
async function heartbeatsOf(
  work: (context: StepContext) => Promise<void>,
  heartbeatDetails?: unknown,
): Promise<unknown[]> {
  const environment = open({ heartbeatDetails })
  const heartbeats: unknown[] = []
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details))
  await environment.run(step(work))
  return heartbeats
}

test('a step that reports nothing repeats the last heartbeat, so that a third attempt still has it', async () => {
  expect(await heartbeatsOf(async () => {}, { claims: 7 })).toEqual([{ claims: 7 }])
})

test('a step heartbeats when it begins, at each report and every second with the details as they are then', async () => {
  stopTheClock()
  const heartbeats = await heartbeatsOf(async ({ report }) => {
    let rows = 0
    report(() => ({ rows }))
    rows = 5
    await vi.advanceTimersByTimeAsync(1_300)
  })
  expect(heartbeats).toEqual([undefined, { rows: 0 }, { rows: 5 }])
})

test('a step that fails heartbeats no more', async () => {
  stopTheClock()
  const environment = open()
  const heartbeats: unknown[] = []
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details))
  const failing = step(async () => {
    throw new Error('no')
  })
  await expect(environment.run(failing)).rejects.toThrow('no')
  await vi.advanceTimersByTimeAsync(3_000)
  expect(heartbeats).toHaveLength(1)
})

test('an error that a retry does not fix ends the run with its own sentence, and every other is retried', async () => {
  const environment = open()
  const fail = (error: Error) =>
    step(async () => {
      throw error
    })
  await expect(environment.run(fail(new InvalidInput('no such list')))).rejects.toMatchObject({
    message: 'no such list',
    type: 'InvalidInput',
    nonRetryable: true,
  })
  await expect(environment.run(fail(new Error('away')))).rejects.toMatchObject({ nonRetryable: false })
})

test('a step of a stopped run hears of it by its signal', async () => {
  const environment = open()
  const stopped = environment.run(
    step(async ({ signal }: StepContext) => {
      environment.cancel()
      signal.throwIfAborted()
    }),
  )
  await expect(stopped).rejects.toMatchObject({ name: 'CancelledFailure' })
})

/** Runs a step while the state is away for so many of its tries; gives what each try found of its attempt. */
async function triesOf(failures: number, shared: object | undefined) {
  const tries: Pick<StepContext, 'lastReport' | 'beganAt'>[] = []
  const heartbeats: unknown[] = []
  const work = async ({ lastReport, beganAt, report }: StepContext) => {
    tries.push({ lastReport, beganAt })
    report(() => ({ claims: tries.length }))
    if (tries.length <= failures)
      throw new StateAwayError({ place: 'state', cause: new Error('ECONNREFUSED') })
  }
  const searchAttributes = () => Promise.resolve([])
  const folder = { dataDir: '/nowhere', outDirs: [], identity, searchAttributes }
  const { step } = createSteps({ ...folder, shared: cached('/nowhere'), state: { shared } as never })
  const info = { currentAttemptScheduledTimestampMs: Date.now(), startToCloseTimeoutMs: 60_000 }
  const environment = open(info)
  environment.on('heartbeat', (details: unknown) => heartbeats.push(details))
  await environment.run(step(work)).catch(() => undefined)
  return { tries, heartbeats }
}

test('an attempt repeats its step while PostgreSQL is away, and leaves that to Temporal while state.db is locked', async () => {
  expect((await triesOf(3, {})).tries).toHaveLength(4)
  expect((await triesOf(3, undefined)).tries).toHaveLength(1)
})

test('a step that is repeated in its attempt knows what it has reported, and when the attempt began', async () => {
  const [first, second] = (await triesOf(1, {})).tries
  expect([first?.lastReport, second?.lastReport]).toEqual([undefined, { claims: 1 }])
  expect(second?.beganAt).toBe(first?.beganAt)
})

test('a step that waits for PostgreSQL says so, and since when', async () => {
  const began = Date.now()
  const { heartbeats } = await triesOf(2, {})
  const told = heartbeats.flatMap((details) => (details as { trouble?: Trouble } | undefined)?.trouble ?? [])
  const since = told[0]?.since ?? 0
  expect(since).toBeGreaterThanOrEqual(began)
  expect(told).toContainEqual({ what: 'does not answer', since, failures: 2, ofState: true })
  expect(describeTrouble(told[0]!, () => '14:02')).toBe(
    'PostgreSQL does not answer since 14:02; nothing is sent, and the run resumes when it is back.',
  )
})
