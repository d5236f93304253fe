import {
  ActivityFailure,
  TimeoutFailure,
  allHandlersFinished,
  condition,
  workflowInfo,
} from '@temporalio/workflow'
import type { SendEnd, SendInput, SendStep } from '../../core/changes/send/step.ts'
import type { RunEnd } from '../../core/runs/run-notes.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { refOf } from '../run/run-ref.ts'
import { toThroughput } from '../run/throughput.ts'
import { type SendState, steps, type Working } from './job.ts'
import type { OperatorState } from './operator-state.ts'
import { texts } from './text.ts'
import type { StagedChanges } from './progress.ts'

const firstSegmentSeconds = 15
const longestSegmentSeconds = 600

export const newSendState = (): SendState => ({
  breakers: {},
  claims: 0,
  seconds: firstSegmentSeconds,
  segment: 1,
  isCanary: false,
  isCutOff: false,
})

type Sending = Working & { staged: StagedChanges; state: SendState }

/** Asks for approval if the job requires it, sends the canary and waits for its result, then sends the rest. */
export async function sendStaged(sending: Sending): Promise<RunEnd> {
  const { job, plan, staged, operator, state } = sending
  const { approval } = job.questions(plan, staged)
  if (staged.open > 0 && approval !== undefined) {
    const seconds = plan.approvalWait
    if (!(await operator.ask({ question: 'approval', seconds, ...approval }))) return notApproved(sending)
  }
  state.isCanary = true
  return await sendRemaining(sending)
}

/** Sends what is staged, without asking for approval: first the canary that has no result yet. */
export async function sendRemaining(sending: Sending): Promise<RunEnd> {
  const end = await sendCanary(sending)
  if (end !== undefined) return end
  const step = await sendSegments(sending)
  return 'how' in step ? step : { how: 'finished' }
}

/** Sends only what people have resolved as absent: somebody may have stopped the rest, and nobody has started it again. */
export async function sendResolved(sending: Sending): Promise<RunEnd> {
  const { operator, progress, control } = sending
  const only = () => (operator.absent.size > 0 ? { rows: [...operator.absent] } : { lookupsOnly: true })
  const step = await sendSegments(sending, { phase: 'sending', only })
  // Changes without an answer that may be sent again count as unknown.
  const { staged = 0, unknown = 0 } = progress.counts ?? {}
  if (staged + unknown === 0 && !control.stopping) return { how: 'finished' }
  // Also where a limit or a breaker has ended it: what is unsent must not be given up.
  const { why } = {
    why: 'only what was resolved is sent; the same import sends the rest',
    ...('how' in step && step),
  }
  return { how: 'stopped', why }
}

const nothing: StagedChanges = { open: 0, sent: 0, again: 0, canary: [], tables: [] }

/** Sends nothing more, and looks up what was sent until every result is known or a second stop arrives. */
export async function lookUpRemaining(
  stopped: Omit<Sending, 'staged'> & { staged: StagedChanges | undefined },
): Promise<void> {
  const { progress, state, staged = nothing } = stopped
  // Without a segment, only the ledger knows what the run had sent before a Reset.
  if (!state.isCutOff && progress.counts?.unknown === 0) return
  // No trial of a breaker follows.
  progress.openBreakers = []
  const sending = { ...stopped, staged, control: stopped.control.forPart({ isAfterStop: true }) }
  await sendSegments(sending, { phase: 'looking up', only: () => ({ lookupsOnly: true }) })
}

/** Sends the canary and those that follow it, and asks for confirmation if the job requires it. */
async function sendCanary(sending: Sending): Promise<RunEnd | undefined> {
  const { job, plan, staged, operator, state } = sending
  if (!state.isCanary) return undefined
  if (staged.canary.length > 0) {
    const step = await sendSegments(sending, { phase: 'canary', only: () => ({ canary: true }) })
    if ('how' in step) return step
    const { rows, failed } = step.canary ?? { rows: [], failed: [] }
    const end = failed.length > 0 ? await job.onCanary(sending, { rows, failed }) : undefined
    if (end !== undefined) return end
  }
  if (job.questions(plan, staged).confirmCanary && staged.open > staged.canary.length) {
    const seconds = plan.approvalWait
    if (!(await operator.ask({ question: 'canary', seconds }))) return notApproved(sending)
  }
  state.isCanary = false
  return undefined
}

function notApproved({ job, control }: Sending): RunEnd {
  const why = control.stopping ? texts[job.name].stopped : texts[job.name].notApproved
  return { how: 'stopped', why }
}

interface Part {
  phase: 'canary' | 'sending' | 'looking up'
  /** Called for each segment: people may resolve more rows. */
  only: () => Pick<SendInput, 'canary' | 'rows' | 'lookupsOnly'>
}

/**
 * Sends in segments of growing length (15 s, doubling to ten minutes), so that progress shows early and 100,000
 * changes still produce only hundreds of events. Returns the last step once everything is sent and reconciled.
 */
async function sendSegments(
  sending: Sending,
  { phase, only }: Part = { phase: 'sending', only: () => ({}) },
): Promise<SendStep | RunEnd> {
  const { job, plan, progress, show, control, operator, state } = sending
  const isCanary = phase === 'canary'
  const isLookup = phase === 'looking up'
  for (;;) {
    await control.mayContinue()
    if (control.stopping) return { how: 'stopped', why: texts[job.name].stopped }
    // Another execution would not know of the stop.
    if (!isLookup) await continueWhereLong(sending)
    progress.phase = phase
    delete progress.nextAt
    show()
    const begun = Date.now()
    const { resolved } = operator
    const summary = isCanary || isLookup ? phase : `send, part ${state.segment}`
    const { seconds, breakers, claims } = state
    const input = { seconds, breakers, claims, ...only() }
    const step = await control.untilInterrupted(async () => {
      try {
        const segment = { ...refOf(plan), limits: progress.limits, ...input }
        return await steps.sendRun.executeWithOptions({ summary }, [segment])
      } catch (error) {
        state.claims = Math.max(claims, claimsReported(error))
        throw error
      }
    })
    state.isCutOff = step === 'interrupted'
    if (step === 'interrupted') continue
    Object.assign(state, { breakers: step.breakers, claims: step.claims, segment: state.segment + 1 })
    if (!isCanary) state.seconds = Math.min(seconds * 2, longestSegmentSeconds)
    const shown = isLookup ? { ...step, openBreakers: [] } : step
    showStep(sending, { step: shown, ms: Date.now() - begun, isCanary })
    if (!isLookup) await notifyOfBreakers(sending, step)
    if (step.ended === 'finished') return step
    const end = await endAfter(sending, { step, isCanary })
    if (end === 'continue') continue
    if (end !== undefined) return end
    await waitUntilDue(sending, { ...step, resolved })
  }
}

/**
 * The number of claims that a segment reported before its worker timed out; a cancelled segment returns its claims
 * in its step instead.
 */
function claimsReported(error: unknown): number {
  if (!(error instanceof ActivityFailure && error.cause instanceof TimeoutFailure)) return 0
  const { claims } = { ...(error.cause.lastHeartbeatDetails as { claims?: unknown } | undefined) }
  return typeof claims === 'number' ? claims : 0
}

function showStep(sending: Sending, segment: { step: SendStep; ms: number; isCanary: boolean }): void {
  const { progress, staged, show } = sending
  const { step, ms, isCanary } = segment
  const left = step.counts.staged
  const done = (progress.counts?.staged ?? staged.open) - left
  // A canary is too short to measure, and waiting between segments is not work.
  const throughput = isCanary ? undefined : toThroughput({ done, left, ms, now: Date.now() })
  delete progress.throughput
  if (throughput !== undefined) progress.throughput = throughput
  const untilNext = msUntilNext(step)
  if (untilNext !== undefined) progress.nextAt = new Date(Date.now() + untilNext).toISOString()
  progress.counts = step.counts
  progress.openBreakers = step.openBreakers
  progress.parkedRows = step.parkedRows ?? []
  show()
}

/** After these, the run continues, and an open breaker tries again. */
const endsThatContinue: readonly SendEnd[] = ['breaker', 'timeUp', 'waiting']

/**
 * Notifies once each time a breaker opens, not for each of its trials, and also while changes of other breakers are being
 * sent.
 */
async function notifyOfBreakers(
  { state, notifier }: Sending,
  { ended, openBreakers, counts }: SendStep,
): Promise<void> {
  const { notifiedBreakers: notified = [] } = state
  const open = openBreakers.map(({ key }) => key)
  const opens = endsThatContinue.includes(ended) && open.some((key) => !notified.includes(key))
  state.notifiedBreakers = opens ? open : notified.filter((key) => open.includes(key))
  if (!opens) return
  const { done, rejected, parked } = counts
  const summary = `${done} done, ${rejected} rejected, ${parked} parked. Single trials follow at growing intervals.`
  const command = connector`run show ${workflowInfo().workflowId}`
  await notifier.notify({ kind: 'breaker', key: new Date().toISOString(), summary, command })
}

/** Handles a reached limit or a breaker that has given up: ends the run, asks a person or skips what it holds back. */
async function endAfter(
  sending: Sending,
  { step, isCanary }: { step: SendStep; isCanary: boolean },
): Promise<RunEnd | 'continue' | undefined> {
  const { job, plan, progress, operator, control, state } = sending
  if (step.ended === 'maxChanges' || step.ended === 'maxFailures')
    return await job.onBound(sending, step.ended)
  if (step.ended !== 'breaker' || step.givenUp.length === 0 || step.nextAt !== undefined) return undefined
  const isClosedByPerson =
    plan.attended && (await operator.ask({ question: 'breaker', seconds: plan.approvalWait }))
  if (!isClosedByPerson) {
    if (plan.attended && control.stopping) return { how: 'stopped', why: texts[job.name].stopped }
    const why = plan.attended
      ? 'the breaker is open, and nobody closed it in time'
      : 'too many changes failed, and so did every trial after it'
    // Beside a canary, others are staged that this breaker does not hold back.
    if (!isCanary || job.skipGivenUp === undefined) return { how: 'finished', why }
    await job.skipGivenUp(sending, { keys: step.givenUp, why })
  }
  const closed = step.givenUp.map((key) => [key, { clearedAt: step.endedAt, trials: 0 }] as const)
  state.breakers = { ...state.breakers, ...Object.fromEntries(closed) }
  state.notifiedBreakers = state.notifiedBreakers?.filter((key) => !step.givenUp.includes(key))
  progress.openBreakers = []
  return 'continue'
}

/** At least a second, because each turn writes events. Undefined if nothing is due. */
const msUntilNext = (step: SendStep): number | undefined =>
  step.nextAt === undefined ? undefined : Math.max(1_000, step.nextAt - step.endedAt)

async function waitUntilDue(
  sending: Sending,
  step: SendStep & Pick<OperatorState, 'resolved'>,
): Promise<void> {
  const { job, plan, show, control, operator } = sending
  const { ended, resolved } = step
  const untilNext = msUntilNext(step)
  if (untilNext === undefined) return
  const ms = Math.max(job.leastWaitMs?.(plan) ?? 0, untilNext)
  show()
  // A stop, a pause or a row that was resolved since the step began ends the wait.
  const summary =
    ended === 'breaker' ? 'waits for the next trial of the breaker' : 'waits until the next change is due'
  const isInterrupted = () => control.stopping || control.paused || operator.resolved > resolved
  await condition(isInterrupted, ms, { summary })
}

/** Continues in a new execution if the history is long. */
async function continueWhereLong(sending: Sending): Promise<void> {
  const { job, plan, staged, progress, control, state } = sending
  if (job.continueAs === undefined || !isHistoryLong(workflowInfo(), plan)) return
  await condition(allHandlersFinished)
  // A stop may have arrived in the meantime, and the next execution would not know of it.
  if (control.stopping) return
  await job.continueAs({ plan, staged, state, progress, paused: control.paused })
}

/**
 * Whether to continue as a new execution: the plan's limit of events is reached, or Temporal suggests it, as it
 * also does for a history that is large in bytes or close to the most updates per execution (2,000).
 */
export const isHistoryLong = (
  history: { historyLength: number; continueAsNewSuggested: boolean },
  { eventsPerExecution = Infinity }: { eventsPerExecution?: number },
): boolean => history.continueAsNewSuggested || history.historyLength >= eventsPerExecution
