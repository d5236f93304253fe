import { ApplicationFailure } from '@temporalio/common'
import type { WorkflowHandle } from '@temporalio/client'
import { expect, test } from 'vitest'
import type { SendInput } from '../../../core/changes/send/sending.ts'
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
} from './steps.ts'

const person = { by: 'Ana', why: 'looked it up' }
const resolution = { row: 2, absent: true, ...person }
const phaseOf = async (run: WorkflowHandle) => (await run.query<{ phase: string }>('status')).phase

let runs = 0
const idOf = (name: string) => `late-${name}-${process.pid}-${(runs += 1)}`

test('an update that arrives while an import reports is refused and changes nothing', async () => {
  const closing = gate()
  const resolved: unknown[] = []
  const { client, taskQueue } = await startSteps({
    openImport: () => importPlan,
    stageImport: () => staged,
    sendImport: () => sendStep(),
    closeImport: async () => {
      await closing.promise
      return closedRun()
    },
    resolveRow: (said: unknown) => void resolved.push(said),
    noteDecision: () => undefined,
  })
  const run = await client.workflow.start('importFile', { workflowId: idOf('import'), taskQueue, args: [{}] })
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
  expect(resolved).toEqual([])
})

test('a row that is resolved while the last changes are sent is sent before the report is written', async () => {
  const [sending, resolving] = [gate(), gate()]
  const steps: string[] = []
  const { client, taskQueue } = await startSteps({
    openImport: () => importPlan,
    stageImport: () => staged,
    sendImport: async () => {
      steps.push('send')
      if (steps.length === 1) await sending.promise
      return sendStep()
    },
    closeImport: () => {
      steps.push('close')
      return closedRun()
    },
    resolveRow: async () => {
      await resolving.promise
      steps.push('resolve')
    },
  })
  const run = await client.workflow.start('importFile', { workflowId: idOf('row'), taskQueue, args: [{}] })
  await until(() => steps.length === 1)
  const answer = await run.startUpdate<string, [object]>('resolve', {
    args: [resolution],
    waitForStage: 'ACCEPTED',
  })
  sending.open()
  await until(async () => (await eventsOf(run)).filter((name) => name === 'sendImport completed').length > 0)
  resolving.open()
  expect(await answer.result()).toBe('row 2 resolved by Ana')
  expect(await run.result()).toMatchObject({ verdict: 'proven' })
  expect(steps).toEqual(['send', 'resolve', 'send', 'close'])
})

test('rows that are resolved while the last changes are sent are sent, although one beside them could not be', async () => {
  const sending = gate()
  const steps: string[] = []
  const { client, taskQueue } = await startSteps({
    openImport: () => importPlan,
    stageImport: () => staged,
    sendImport: async () => {
      steps.push('send')
      if (steps.length === 1) await sending.promise
      return sendStep()
    },
    closeImport: () => {
      steps.push('close')
      return closedRun()
    },
    resolveRow: () => {
      steps.push('resolve')
      throw ApplicationFailure.nonRetryable('row 3 is done, not parked', 'NotParkedError')
    },
  })
  const run = await client.workflow.start('importFile', { workflowId: idOf('some'), taskQueue, args: [{}] })
  await until(() => steps.length === 1)
  const { row: _, ...decision } = resolution
  await expect(run.executeUpdate('resolve', { args: [{ ...decision, rows: [2, 3] }] })).rejects.toMatchObject(
    { cause: { type: 'NotParkedError' } },
  )
  sending.open()
  await run.result()
  expect(steps).toEqual(['send', 'resolve', 'send', 'close'])
})

const onlyResolved = { ...importPlan, onlyResolved: true }

test('a run that sends only what is resolved also sends a row that is resolved meanwhile, and nothing without one', async () => {
  const sending = gate()
  const inputs: SendInput[] = []
  const ends: object[] = []
  const { client, taskQueue } = await startSteps({
    openImport: () => onlyResolved,
    stageImport: () => staged,
    sendImport: async (input: SendInput) => {
      inputs.push(input)
      if (inputs.length === 1) await sending.promise
      return sendStep({ counts: countsOf({ staged: 2 }) })
    },
    closeImport: (end: object) => {
      ends.push(end)
      return closedRun()
    },
    resolveRow: () => undefined,
  })
  const run = await client.workflow.start('importFile', { workflowId: idOf('only'), taskQueue, args: [{}] })
  await until(() => inputs.length === 1)
  await run.executeUpdate('resolve', { args: [{ ...resolution, row: 3 }] })
  sending.open()
  await run.result()
  expect(inputs).toMatchObject([{ lookupsOnly: true }, { rows: [3] }])
  expect(inputs[0]?.rows).toBeUndefined()
  expect(ends).toMatchObject([{ how: 'stopped', giveUp: false }])
})

test('a run that sends only what is resolved waits for the update that it was started with, and is proven once', async () => {
  const [staging, resolving] = [gate(), gate()]
  const inputs: SendInput[] = []
  const { client, taskQueue } = await startSteps({
    openImport: () => onlyResolved,
    stageImport: async () => {
      await staging.promise
      return staged
    },
    sendImport: (input: SendInput) => {
      inputs.push(input)
      return sendStep()
    },
    closeImport: () => closedRun(),
    resolveRow: () => resolving.promise,
  })
  const run = await client.workflow.start('importFile', { workflowId: idOf('first'), taskQueue, args: [{}] })
  const answer = await run.startUpdate<string, [object]>('resolve', {
    args: [resolution],
    waitForStage: 'ACCEPTED',
  })
  staging.open()
  await until(async () => (await eventsOf(run)).includes('stageImport completed'))
  resolving.open()
  await answer.result()
  await run.result()
  expect(inputs).toMatchObject([{ rows: [2] }])
})

test('a run that sends only what is resolved sends those rows that were resolved before one that could not be', async () => {
  const sending = gate()
  const inputs: SendInput[] = []
  const { client, taskQueue } = await startSteps({
    openImport: () => onlyResolved,
    stageImport: () => staged,
    sendImport: async (input: SendInput) => {
      inputs.push(input)
      if (inputs.length === 1) await sending.promise
      return sendStep()
    },
    closeImport: () => closedRun(),
    resolveRow: () => {
      throw ApplicationFailure.nonRetryable('row 3 is not parked', 'InvalidInput', { resolved: [2] })
    },
  })
  const run = await client.workflow.start('importFile', { workflowId: idOf('part'), taskQueue, args: [{}] })
  await until(() => inputs.length === 1)
  const { row: _, ...decision } = resolution
  const update = run.executeUpdate('resolve', { args: [{ ...decision, rows: [2, 3] }] })
  await expect(update).rejects.toMatchObject({ cause: { message: 'row 3 is not parked' } })
  sending.open()
  await run.result()
  expect(inputs[1]).toMatchObject({ rows: [2] })
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
    const ends: object[] = []
    const { client, taskQueue } = await startSteps({
      openImport: () => onlyResolved,
      stageImport: () => staged,
      sendImport: () => sendStep(step),
      closeImport: (of: object) => {
        ends.push(of)
        return closedRun()
      },
    })
    await client.workflow.execute('importFile', { workflowId: idOf('left'), taskQueue, args: [{}] })
    expect(ends).toMatchObject([{ giveUp: false, ...end }])
  },
)

test('a row that is resolved at the end is sent with the breakers and the claims of the run so far', async () => {
  const breakers = { '': { clearedAt: 1, openedAt: 2, trials: 1 } }
  const sending = gate()
  const inputs: SendInput[] = []
  const { client, taskQueue } = await startSteps({
    openImport: () => importPlan,
    stageImport: () => staged,
    sendImport: async (input: SendInput) => {
      inputs.push(input)
      if (inputs.length === 1) await sending.promise
      return sendStep({ breakers, claims: 7 })
    },
    closeImport: () => closedRun(),
    resolveRow: () => undefined,
  })
  const run = await client.workflow.start('importFile', { workflowId: idOf('state'), taskQueue, args: [{}] })
  await until(() => inputs.length === 1)
  await run.executeUpdate('resolve', { args: [resolution] })
  sending.open()
  await run.result()
  expect(inputs.slice(1)).toMatchObject([{ breakers, claims: 7 }])
})

test.each(['the time is up', 'the run is stopped'])(
  'an approval that is recorded while %s counts, because the next start goes by it',
  async (what) => {
    const [noting, noted] = [gate(), gate()]
    const { client, taskQueue } = await startSteps({
      openImport: () => ({
        ...importPlan,
        approval: true,
        approvalWait: what === 'the time is up' ? 1 : 600,
      }),
      stageImport: () => staged,
      sendImport: () => sendStep(),
      noteDecision: async () => {
        noting.open()
        await noted.promise
      },
      closeImport: () => closedRun(),
    })
    const run = await client.workflow.start('importFile', {
      workflowId: idOf(what.replaceAll(' ', '-')),
      taskQueue,
      args: [{}],
    })
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
    const sent = (await eventsOf(run)).includes('sendImport completed')
    expect(sent).toBe(what === 'the time is up')
  },
)

test('a recovery refuses updates while it reports', async () => {
  const closing = gate()
  const { client, taskQueue } = await startSteps({
    openRecovery: () => recoveryPlan,
    snapshotRecovery: () => snapshot,
    sendRecovery: () => sendStep(),
    closeRecovery: async () => {
      await closing.promise
      return closedRun()
    },
  })
  const run = await client.workflow.start('recoverSubscriptions', { workflowId: idOf('recovery'), taskQueue })
  await until(async () => (await phaseOf(run)) === 'reporting')
  const late = run.executeUpdate('resolve', { args: [resolution] })
  await expect(late).rejects.toMatchObject({ cause: { type: 'RunEnding' } })
  closing.open()
  await run.result()
})

test('updates are answered after Request Cancellation, until the run reports', async () => {
  const told: unknown[] = []
  const { client, taskQueue } = await startSteps({
    openRecovery: () => recoveryPlan,
    snapshotRecovery: () => snapshot,
    sendRecovery: () =>
      sendStep({
        ended: 'waiting',
        nextAt: Date.now() + 3_600_000,
        counts: countsOf({ done: 2, unknown: 1 }),
      }),
    closeRecovery: () => closedRun(),
    noteDecision: (said: unknown) => told.push(said),
    resolveRow: (said: unknown) => void told.push(said),
  })
  const run = await client.workflow.start('recoverSubscriptions', {
    workflowId: idOf('cancelled'),
    taskQueue,
  })
  await until(async () => (await eventsOf(run)).includes('sendRecovery completed'))
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
