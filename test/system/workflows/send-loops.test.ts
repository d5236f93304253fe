import { Context, heartbeat } from '@temporalio/activity'
import type { WorkflowHandle } from '@temporalio/client'
import { expect, test } from 'vitest'
import type { SendInput } from '../../../core/changes/send/step.ts'
import type { WriteProgress } from '../../../workflows/write-run/progress.ts'
import { until } from '../export/world.ts'
import {
  closedRun,
  countsOf,
  gate,
  importPlan,
  recoveryPlan,
  sendStep,
  snapshot,
  staged,
  startSteps,
} from './steps.ts'

const hourMs = 3_600_000
let runs = 0

/** A step that leaves one change to be looked up. */
const waiting = (ms: number, more: object = {}) =>
  sendStep({ ended: 'waiting', nextAt: Date.now() + ms, counts: countsOf({ unknown: 1 }), ...more })

async function startRun(
  type: 'importFile' | 'recoverSubscriptions',
  send: (input: SendInput & { limits: { requestsPerSecond?: number } }) => unknown,
  { canary = [] as number[], eventsPerExecution = 1_000, attended = false } = {},
) {
  const { client, taskQueue } = await startSteps({
    openRun: ({ job }: { job: string }) =>
      job === 'import'
        ? { ...importPlan, attended, notifies: ['breaker'] }
        : { ...recoveryPlan, eventsPerExecution },
    noteDecision: () => undefined,
    stageRun: () => (type === 'importFile' ? staged : { ...snapshot, canary }),
    sendRun: send,
    resolveRow: () => undefined,
    sendNotification: () => 'delivered',
    closeRun: () => closedRun(),
  })
  const workflowId = `loops-${process.pid}-${(runs += 1)}`
  return await client.workflow.start(type, { workflowId, taskQueue, args: [{}] })
}

test(
  'a recovery whose canary takes many segments continues as new with it when its history grows long',
  { tags: ['long'] },
  async () => {
    const sent: (boolean | undefined)[] = []
    const run = await startRun(
      'recoverSubscriptions',
      ({ canary }) => {
        sent.push(canary)
        return sendStep(sent.length < 30 ? { ended: 'timeUp' } : {})
      },
      { canary: [1], eventsPerExecution: 50 },
    )
    await run.result()
    const { events } = await run.client.getHandle(run.workflowId, run.firstExecutionRunId).fetchHistory()
    expect(events?.length).toBeLessThan(100)
    expect(sent).toEqual([...Array.from({ length: 30 }, () => true), undefined])
  },
)

async function timersOf(run: WorkflowHandle): Promise<number[]> {
  const { events } = await run.fetchHistory()
  return (events ?? []).flatMap(({ timerStartedEventAttributes: timer }) =>
    timer ? [Number(timer.startToFireTimeout?.seconds ?? 0)] : [],
  )
}

const person = { by: 'Ana', why: 'the service works again' }
const isAskedAboutBreaker = (run: WorkflowHandle) =>
  until(async () => (await run.query<WriteProgress>('status')).waitingFor?.question === 'breaker')

async function notificationsOf(run: WorkflowHandle): Promise<number> {
  const { events } = await run.fetchHistory()
  return events?.filter(({ childWorkflowExecutionStartedEventAttributes: child }) => child).length ?? 0
}

test('an import whose worker has a slow clock waits at least a second between two segments', async () => {
  const steps = [waiting(-hourMs), sendStep()]
  const run = await startRun('importFile', () => steps.shift())
  await run.result()
  expect(await timersOf(run)).toEqual([1])
})

test.each([
  ['ahead', hourMs],
  ['behind', -hourMs],
])('an import waits as long as its segment says, although the clock of the worker is %s', async (_, ms) => {
  const endedAt = Date.now() + ms
  const steps = [waiting(0, { endedAt, nextAt: endedAt + 2_500 }), sendStep()]
  const run = await startRun('importFile', () => steps.shift())
  await run.result()
  expect(await timersOf(run)).toEqual([2])
})

test('a breaker that a person closes forgets what had failed, although the clock of the worker is ahead', async () => {
  const endedAt = Date.now() + hourMs
  const inputs: SendInput[] = []
  const run = await startRun(
    'importFile',
    (input) => {
      inputs.push(input)
      return inputs.length === 1 ? sendStep({ ended: 'breaker', givenUp: [''], endedAt }) : sendStep()
    },
    { attended: true },
  )
  await isAskedAboutBreaker(run)
  await run.executeUpdate('approve', { args: [person] })
  await run.result()
  expect(inputs[1]).toMatchObject({ breakers: { '': { clearedAt: endedAt, trials: 0 } } })
})

test('an open breaker is notified once, also if nothing is due for a while', { tags: ['long'] }, async () => {
  const openBreakers = [{ key: '', failed: 10, of: 10, trial: 1, trials: 3 }]
  const steps = [
    waiting(0, { ended: 'breaker', openBreakers }),
    waiting(0, { openBreakers }),
    waiting(0, { ended: 'breaker', openBreakers }),
    sendStep({ openBreakers: [] }),
  ]
  const run = await startRun('importFile', () => steps.shift())
  await run.result()
  expect(await notificationsOf(run)).toBe(1)
})

test('a breaker that opens beside an open one is notified, and the open one not again', async () => {
  const [one, other] = ['gateway_issue', 'biller_issue'].map((key) => ({
    key,
    failed: 10,
    of: 10,
    trial: 1,
    trials: 3,
  }))
  const steps = [
    waiting(0, { ended: 'breaker', openBreakers: [one] }),
    // The changes of a third one are being sent.
    waiting(0, { ended: 'timeUp', openBreakers: [one, other] }),
    waiting(0, { ended: 'breaker', openBreakers: [other] }),
  ]
  const run = await startRun('importFile', () => steps.shift() ?? sendStep({ openBreakers: [] }))
  await run.result()
  expect(await notificationsOf(run)).toBe(2)
})

test('a breaker that opens again after a person closed it is notified again', async () => {
  const openBreakers = [{ key: '', failed: 10, of: 10, trial: 1, trials: 3 }]
  const steps = [
    sendStep({ ended: 'breaker', givenUp: [''], openBreakers }),
    waiting(0, { ended: 'breaker', openBreakers }),
    sendStep({ openBreakers: [] }),
  ]
  const run = await startRun('importFile', () => steps.shift(), { attended: true })
  await isAskedAboutBreaker(run)
  await run.executeUpdate('approve', { args: [person] })
  await run.result()
  expect(await notificationsOf(run)).toBe(2)
})

test('a row that is resolved during a segment is sent before the wait that the segment asks for', async () => {
  const [sending, resolved] = [gate(), gate()]
  let segments = 0
  const run = await startRun('importFile', async () => {
    segments += 1
    if (segments > 1) return sendStep()
    sending.open()
    await resolved.promise
    return waiting(hourMs)
  })
  await sending.promise
  const resolution = { row: 2, absent: true, by: 'Ana', why: 'looked it up' }
  await run.executeUpdate('resolve', { args: [resolution] })
  resolved.open()
  await run.result()
  expect(segments).toBeGreaterThan(1)
})

test('a recovery that was stopped twice before its last requests were answered waits for no lookup', async () => {
  const [sending, answered] = [gate(), gate()]
  const run = await startRun('recoverSubscriptions', async ({ lookupsOnly }) => {
    if (lookupsOnly === true) return waiting(hourMs)
    sending.open()
    const beat = setInterval(() => heartbeat(), 50)
    await Context.current().cancelled.catch(() => undefined)
    await answered.promise
    clearInterval(beat)
    return waiting(hourMs, { ended: 'stopped' })
  })
  await sending.promise
  await run.signal('stop')
  await run.signal('stop')
  answered.open()
  await run.result()
})

test('a rate that is changed while a stopped recovery looks up holds at once', async () => {
  const begun = gate()
  const rates: unknown[] = []
  const run = await startRun('recoverSubscriptions', async ({ lookupsOnly, limits }) => {
    begun.open()
    if (lookupsOnly !== true) return waiting(hourMs)
    rates.push(limits.requestsPerSecond)
    if (rates.length > 1) return sendStep()
    const beat = setInterval(() => heartbeat(), 50)
    await Context.current().cancelled.catch(() => undefined)
    clearInterval(beat)
    return waiting(0, { ended: 'stopped' })
  })
  await begun.promise
  await run.signal('stop')
  await until(() => rates.length === 1)
  await run.executeUpdate('setLimits', { args: [{ requestsPerSecond: 7 }] })
  await run.result()
  expect(rates).toEqual([undefined, 7])
})

test('a stopped recovery that looks up announces no trial of a breaker, because it resumes nothing more', async () => {
  const [looking, seen] = [gate(), gate()]
  const openBreakers = [{ key: 'gateway_issue', failed: 11, of: 20, trial: 1, trials: 3, nextTrialAt: 1 }]
  let lookups = 0
  const run = await startRun('recoverSubscriptions', async ({ lookupsOnly }) => {
    if (lookupsOnly !== true) return waiting(hourMs, { openBreakers })
    lookups += 1
    if (lookups === 1) return waiting(0, { openBreakers })
    looking.open()
    await seen.promise
    return sendStep()
  })
  await until(async () => (await run.query<WriteProgress>('status')).openBreakers?.length === 1)
  await run.signal('stop')
  await looking.promise
  expect(await run.query<WriteProgress>('status')).toMatchObject({ phase: 'looking up', openBreakers: [] })
  seen.open()
  await run.result()
})

test('a stopped recovery that looks up reports the claims of its last step, so that a restored ledger is noticed once', async () => {
  const inputs: SendInput[] = []
  const steps = [waiting(hourMs, { claims: 7 }), waiting(0, { claims: 3 }), sendStep()]
  const run = await startRun('recoverSubscriptions', (input) => {
    inputs.push(input)
    return steps.shift()
  })
  await until(() => inputs.length === 1)
  await run.signal('stop')
  await run.result()
  expect(inputs.map(({ claims }) => claims)).toEqual([0, 7, 3])
})
