import { ApplicationFailure } from '@temporalio/common'
import type { WorkflowHandle } from '@temporalio/client'
import { expect, test } from 'vitest'
import type { SendInput } from '../../../core/changes/send/step.ts'
import { until } from '../export/world.ts'
import {
  countsOf,
  gate,
  importPlan,
  closedRun,
  recoveryPlan,
  sendStep,
  snapshot,
  staged,
  startSteps,
  type Steps,
} from './steps.ts'

const person = { by: 'Ana', why: 'looked it up' }
const resolution = { row: 2, absent: true, ...person }
const phaseOf = async (run: WorkflowHandle) => (await run.query<{ phase: string }>('status')).phase

let runs = 0
const idOf = (name: string) => `late-${name}-${process.pid}-${(runs += 1)}`

/**
 * An import whose first sending waits until `sending` is opened; the second one finds nothing left. Records what its
 * steps were told.
 */
async function startImport(steps: Steps & { step?: object } = {}) {
  const { step = {}, ...others } = steps
  const sending = gate()
  const order: string[] = []
  const inputs: SendInput[] = []
  const ends: object[] = []
  const { client, taskQueue } = await startSteps({
    openRun: () => importPlan,
    stageRun: () => staged,
    sendRun: async (input: SendInput) => {
      order.push('send')
      inputs.push(input)
      if (inputs.length === 1) await sending.promise
      return sendStep(step)
    },
    closeRun: (end: object) => {
      order.push('close')
      ends.push(end)
      return closedRun()
    },
    resolveRow: () => void order.push('resolve'),
    ...others,
  })
  const run = await client.workflow.start('importFile', { workflowId: idOf('import'), taskQueue, args: [{}] })
  return { run, sending, order, inputs, ends }
}

test('an update that arrives while an import reports is refused and changes nothing', async () => {
  const closing = gate()
  const { run, sending, order } = await startImport({
    closeRun: () => closing.promise.then(() => closedRun()),
    noteDecision: () => undefined,
  })
  sending.open()
  await until(async () => (await phaseOf(run)) === 'reporting')
  for (const [name, said] of [
    ['resolve', resolution],
    ['setLimits', { concurrency: 2 }],
    ['approve', person],
  ] as const)
    await expect(run.executeUpdate(name, { args: [said] })).rejects.toMatchObject({
      cause: {
        type: 'RunEnding',
        message: 'The run is writing its report and takes no more updates. Try again once it has ended.',
      },
    })
  closing.open()
  expect(await run.result()).toMatchObject({ verdict: 'proven' })
  expect(order).toEqual(['send'])
})

test('a row that is resolved while the last changes are sent is sent before the report is written', async () => {
  const resolving = gate()
  const { run, sending, order } = await startImport({
    resolveRow: async () => {
      await resolving.promise
      order.push('resolve')
    },
  })
  await until(() => order.length === 1)
  const answer = await run.startUpdate<string, [object]>('resolve', {
    args: [resolution],
    waitForStage: 'ACCEPTED',
  })
  sending.open()
  await until(async () => (await eventsOf(run)).includes('sendRun completed'))
  resolving.open()
  expect(await answer.result()).toBe('row 2 resolved by Ana')
  expect(await run.result()).toMatchObject({ verdict: 'proven' })
  expect(order).toEqual(['send', 'resolve', 'send', 'close'])
})

const onlyResolved = () => ({ ...importPlan, onlyResolved: true })
const { row: _, ...decision } = resolution
const notParked = (type: string, details: object = {}) => {
  throw ApplicationFailure.nonRetryable('row 3 is not parked', type, details)
}
const breakers = { '': { clearedAt: 1, openedAt: 2, trials: 1 } }

test.each<{
  title: string
  steps: Parameters<typeof startImport>[0]
  said?: object
  second: object
  end?: object
}>([
  {
    title: 'with the breakers and the claims of the run so far',
    steps: { step: { breakers, claims: 7 } },
    second: { breakers, claims: 7 },
  },
  {
    title: 'although one beside it could not be resolved',
    steps: { resolveRow: () => notParked('NotParkedError') },
    said: { ...decision, rows: [2, 3] },
    second: {},
  },
  {
    title: 'by a run that sends only what is resolved, alone',
    steps: { openRun: onlyResolved, step: { counts: countsOf({ staged: 2 }) } },
    said: { ...resolution, row: 3 },
    second: { rows: [3] },
    end: { how: 'stopped' },
  },
  {
    title: 'by a run that sends only what is resolved, if it was resolved before one that could not be',
    steps: { openRun: onlyResolved, resolveRow: () => notParked('InvalidInput', { resolved: [2] }) },
    said: { ...decision, rows: [2, 3] },
    second: { rows: [2] },
  },
])('a row that is resolved while the last changes are sent is sent $title', async (one) => {
  const { steps, said = resolution, second, end = {} } = one
  const { run, sending, inputs, ends } = await startImport(steps)
  await until(() => inputs.length === 1)
  const answer = run.executeUpdate('resolve', { args: [said] })
  if (steps?.resolveRow === undefined) await answer
  else await expect(answer).rejects.toMatchObject({ cause: { message: 'row 3 is not parked' } })
  sending.open()
  await run.result()
  expect(inputs).toMatchObject([steps?.openRun === undefined ? {} : { lookupsOnly: true }, second])
  expect(inputs[0]?.rows).toBeUndefined()
  expect(ends).toMatchObject([end])
})

test('a run that sends only what is resolved waits for the update that it was started with, and is proven once', async () => {
  const [staging, resolving] = [gate(), gate()]
  const { run, sending, inputs } = await startImport({
    openRun: onlyResolved,
    stageRun: () => staging.promise.then(() => staged),
    resolveRow: () => resolving.promise,
  })
  sending.open()
  const answer = await run.startUpdate<string, [object]>('resolve', {
    args: [resolution],
    waitForStage: 'ACCEPTED',
  })
  staging.open()
  await until(async () => (await eventsOf(run)).includes('stageRun completed'))
  resolving.open()
  await answer.result()
  await run.result()
  expect(inputs).toMatchObject([{ rows: [2] }])
})

const rest = expect.stringContaining('the same import sends the rest')

test.each([
  [
    { ended: 'maxFailures', counts: countsOf({ staged: 2 }) },
    { how: 'stopped', why: expect.stringContaining('failed') },
  ],
  [
    { ended: 'breaker', givenUp: [''], counts: countsOf({ staged: 2 }) },
    { how: 'stopped', why: expect.stringContaining('trial') },
  ],
  [{ counts: countsOf({ staged: 1 }) }, { how: 'stopped', why: rest }],
  // They may be sent again.
  [{ counts: countsOf({ unknown: 1 }) }, { how: 'stopped', why: rest }],
  [{ ended: 'maxFailures', counts: countsOf({ rejected: 1 }) }, { how: 'finished' }],
])(
  'a run that sends only what is resolved gives up nothing, and is finished only without a rest: %o',
  async (step, end) => {
    const { run, sending, ends } = await startImport({ openRun: onlyResolved, step })
    sending.open()
    await run.result()
    expect(ends).toMatchObject([end])
    // A finished run that says why gives up the rest.
    expect(ends).not.toMatchObject([{ how: 'finished', why: expect.any(String) }])
  },
)

test.each(['the time is up', 'the run is stopped'])(
  'an approval that is recorded while %s counts, because the next start goes by it',
  async (what) => {
    const [noting, noted] = [gate(), gate()]
    const approvalWait = what === 'the time is up' ? 1 : 600
    const { run, sending } = await startImport({
      openRun: () => ({ ...importPlan, approval: true, approvalWait }),
      noteDecision: async () => {
        noting.open()
        await noted.promise
      },
    })
    sending.open()
    await until(async () => (await phaseOf(run)) === 'waiting for approval')
    const answer = await run.startUpdate<string, [object]>('approve', {
      args: [person],
      waitForStage: 'ACCEPTED',
    })
    await noting.promise
    if (what === 'the run is stopped') await run.signal('stop')
    await until(async () => {
      const { events } = await run.fetchHistory()
      const isOver = events?.some(
        (event) => event.timerFiredEventAttributes ?? event.timerCanceledEventAttributes,
      )
      return isOver === true
    })
    noted.open()
    expect(await answer.result()).toBe('approved by Ana')
    await run.result()
    const sent = (await eventsOf(run)).includes('sendRun completed')
    expect(sent).toBe(what === 'the time is up')
  },
)

test('updates are answered after Request Cancellation, until the run reports', async () => {
  const told: unknown[] = []
  const { client, taskQueue } = await startSteps({
    openRun: () => recoveryPlan,
    stageRun: () => snapshot,
    sendRun: () =>
      sendStep({
        ended: 'waiting',
        nextAt: Date.now() + 3_600_000,
        counts: countsOf({ done: 2, unknown: 1 }),
      }),
    closeRun: () => closedRun(),
    noteDecision: (said: unknown) => told.push(said),
    resolveRow: (said: unknown) => void told.push(said),
  })
  const run = await client.workflow.start('recoverSubscriptions', {
    workflowId: idOf('cancelled'),
    taskQueue,
  })
  await until(async () => (await eventsOf(run)).includes('sendRun completed'))
  await run.cancel()
  await until(async () => (await phaseOf(run)) === 'looking up')
  await run.executeUpdate('setLimits', { args: [{ concurrency: 3, ...person }] })
  expect(await run.executeUpdate('resolve', { args: [resolution] })).toBe('row 2 resolved by Ana')
  expect(told).toHaveLength(2)
  await run.signal('stop')
  await run.result()
})

/** The activities of a run that have completed, by name. */
async function eventsOf(run: WorkflowHandle): Promise<string[]> {
  const { events = [] } = await run.fetchHistory()
  const names = new Map<string, string>()
  const completed: string[] = []
  for (const event of events ?? []) {
    const name = event.activityTaskScheduledEventAttributes?.activityType?.name
    if (typeof name === 'string') names.set(String(event.eventId), name)
    const scheduled = event.activityTaskCompletedEventAttributes?.scheduledEventId
    if (scheduled !== undefined) completed.push(`${names.get(String(scheduled))} completed`)
  }
  return completed
}
