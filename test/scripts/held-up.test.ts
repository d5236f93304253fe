import { defaultPayloadConverter } from '@temporalio/common'
import { expect, test } from 'vitest'
import { heldUp, toQuestion, toTexts, waitingTasks } from '../../scripts/runs/held-up.ts'

const seconds = (at: number) => ({ seconds: Math.round(at / 1000) })
const trouble = { what: 'answers 503', since: Date.now() - 60_000, failures: 3 }
const started = 2
const scheduled = 1

const described = (...pendingActivities: object[]) => ({ raw: { pendingActivities } }) as never
const beating = (details: object) => ({
  heartbeatDetails: { payloads: [defaultPayloadConverter.toPayload(details)] },
})

test('a run says what holds up each of its steps, and when it tries again', () => {
  const failed = { lastFailure: { message: 'no connection for GET /plans/.' }, attempt: 3 }
  const at = Date.now() + 30_000
  const says = heldUp(
    described(
      { activityId: '1', state: started, attempt: 1, ...beating({ records: 5, trouble }) },
      { activityId: '2', state: scheduled, ...failed, nextAttemptScheduleTime: seconds(at) },
    ),
  ).map(({ text }) => text)
  expect(says).toEqual([
    expect.stringMatching(/^The service answers 503 since .*, attempt 4\.$/),
    expect.stringMatching(/^Retrying after: no connection for GET \/plans\/; attempt 3 at \d{4}-.*\.$/),
  ])
})

test('steps that are held up by the same are told once, though not since the same second', () => {
  const token = { ...trouble, tokenUntil: Date.now() }
  const steps = [token, { ...token, since: token.since + 1 }].map((one) => beating({ trouble: one }))
  expect(toTexts(heldUp(described(...steps)))).toHaveLength(1)
})

test('a step that fails for a moment, a worker that was shut down, and details of another form are not told', () => {
  const shutdown = { lastFailure: { message: 'x', applicationFailureInfo: { type: 'WorkerShutdown' } } }
  const brief = { ...trouble, since: Date.now() - 1_000 }
  for (const step of [
    beating({ trouble: brief }),
    beating({ trouble: { what: 1 } }),
    beating({}),
    shutdown,
    {},
  ])
    expect(heldUp(described({ activityId: '1', ...step }))).toEqual([])
})

test('a step that waits for its retry is not one that no worker picks up: its interval counts', () => {
  const retry = { activityId: '1', state: scheduled, attempt: 4, currentRetryInterval: { seconds: 60 } }
  expect(waitingTasks(described(retry))).toEqual([{ key: '1 4', retryMs: 60_000 }])
  expect(waitingTasks(described({ ...retry, state: started, lastStartedTime: seconds(Date.now()) }))).toEqual(
    [],
  )
  // Before its first attempt nobody has it.
  expect(waitingTasks(described({ activityId: '1', state: scheduled, attempt: 1 }))).toEqual([
    { key: '1 1', retryMs: 0 },
  ])
})

test.each([
  ['approval', { sent: 0, again: 0, canary: [1] }, 'Nothing was sent yet'],
  ['approval', { sent: 1, again: 1, canary: [1] }, '1 was sent, and the others wait'],
  ['canary', { sent: 0, again: 0, canary: [] }, 'Nothing was sent yet'],
  ['canary', { sent: 3, again: 1, canary: [1, 5] }, '4 were sent, and the others wait'],
] as const)('a run that asks (%s) says how many were sent: %j', (question, staged, says) => {
  const waitingFor = { question, until: '2026-11-21T02:00:07Z' }
  expect(toQuestion({ staged, waitingFor } as never, 'import-1')).toMatch(
    new RegExp(`^${says}\\. The run waits for approval until`),
  )
})
