import {
  ApplicationFailure,
  CancellationScope,
  allHandlersFinished,
  condition,
  continueAsNew,
  proxyActivities,
  rootCause,
  setCurrentDetails,
  workflowInfo,
} from '@temporalio/workflow'
import type { RecoveryEnd } from '../core/recoveries/close.ts'
import type { RecoveryReport } from '../core/recoveries/view.ts'
import type { Activities } from '../activities/index.ts'
import type { RecoveryInput } from '../core/recoveries/input.ts'
import type { Opened } from '../core/notifications/opened.ts'
import type { Snapshot } from '../core/recoveries/run-files.ts'
import type { RecoveryPlan } from '../core/recoveries/plan.ts'
import { type Desk, openDesk } from './write-run/operator.ts'
import { openMarks, type Marks } from './run/search-attributes.ts'
import { describeRecovery, type RecoveryProgress } from './recovery-details.ts'
import { onlyFailures } from './only-failures.ts'
import { tellEnd, tellPreview } from './write-run/notify-recovery.ts'
import { lookToTheEnd, resumeAll } from './write-run/send-recovery.ts'
import { controlRun, stoppedBefore, type RunControl } from './run/control.ts'
import { refOf } from './ref-of.ts'
import { newThread, type SendingEnd, type Thread } from './write-run/send-loop.ts'

const patience = { initialInterval: '1s', maximumInterval: '1 minute', maximumAttempts: 40 } as const

const { openRecovery } = proxyActivities<Activities>({
  // A stopped run has ended when its step has: what the step still does is in the report.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '5s',
  retry: patience,
})
const { snapshotRecovery, closeRecovery } = proxyActivities<Activities>({
  startToCloseTimeout: '6 hours',
  heartbeatTimeout: '5s',
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  retry: patience,
})

/** What one execution hands on to the next, where a history grew long. */
interface Onward {
  plan: Opened<RecoveryPlan>
  snapshot: Snapshot
  thread: Thread
  progress: RecoveryProgress
  paused: boolean
}

interface Run {
  progress: RecoveryProgress
  show: () => void
  control: RunControl
  desk: Desk<RecoveryPlan, RecoveryReport>
  marks: Marks
  onward: Onward | undefined
}

const words = {
  limits: { requestsPerSecond: 2, concurrency: 1, maxSubscriptions: 100, maxFailureShare: 0.2 },
  report:
    'Subscriptions by outcome, a page of 100 at a time: {"outcome": "parked", "page": 1}. All of them are in recovery.csv.',
}

/**
 * Resumes subscriptions that need attention, within bounds: reads the list first, tries a few of each reason, then
 * the rest; looks after each what became of it; tries what fell back again after growing waits; stops by itself
 * where it does harm; and ends in a report that says of each what became of it and what needs a person.
 */
export async function recoverSubscriptions(
  input?: RecoveryInput | { onward: Onward } | null,
): Promise<RecoveryReport> {
  refuseCron()
  const onward = onwardIn(input)
  const progress: RecoveryProgress = onward?.progress ?? { phase: 'checking', limits: {}, failedCanaries: [] }
  const marks = openMarks()
  const show = () => {
    setCurrentDetails(describeRecovery(progress))
    // Whoever looks for runs that wait for somebody finds it; how it ended is said at its end.
    if (progress.phase !== 'ended') marks.set({ needsPerson: progress.waitingFor !== undefined })
  }
  const control = controlRun({
    words: { between: 'two resumes', kept: 'what was resumed is known' },
    paused: onward?.paused ?? false,
    onChange: (now) => {
      if (progress.phase !== 'ended')
        progress.phase = now.stopping ? 'stopping' : now.paused ? 'paused' : 'sending'
      show()
    },
  })
  const desk = openDesk<RecoveryPlan, RecoveryReport>({ progress, show, control, words })
  show()
  return CancellationScope.nonCancellable(async () => {
    const plan = onward?.plan ?? (await open({ input, control }))
    const { run, identity, limits } = plan
    if (onward === undefined)
      Object.assign(progress, { run, identity, limits: { ...limits, ...progress.limits } })
    desk.plan = plan
    desk.notices.listen(plan)
    marks.listen(plan)
    marks.set({ resources: ['subscriptions'] })
    return await runPlan({ plan, progress, show, control, desk, marks, onward })
  }).catch(desk.notices.fail)
}

/** All executions of a cron are one run to the ledger, so that from the second night on nothing would be done. */
function refuseCron(): void {
  if (workflowInfo().cronSchedule === undefined) return
  const instead = 'make a schedule for it (connector schedule apply, or Schedules in the Temporal UI).'
  throw ApplicationFailure.nonRetryable(`A recovery can't be started with a cron: ${instead}`, 'InvalidInput')
}

/** Only an execution that continues another one is handed something on: an input of that name is no field of ours. */
function onwardIn(input: unknown): Onward | undefined {
  if (workflowInfo().continuedFromExecutionRunId === undefined) return undefined
  return (input as { onward?: Onward } | null | undefined)?.onward
}

async function open({
  input,
  control,
}: {
  input: unknown
  control: RunControl
}): Promise<Opened<RecoveryPlan>> {
  const { firstExecutionRunId: firstRunId } = workflowInfo()
  const summary = 'check input and service'
  const plan = await control.unlessStopped(() =>
    openRecovery.executeWithOptions({ summary }, [{ input: input ?? {}, firstRunId }]),
  )
  if (plan === undefined) throw stoppedBefore('Stopped before anything was read; nothing was resumed.')
  return plan
}

type Planned = Run & { plan: Opened<RecoveryPlan> }

async function runPlan(run: Planned): Promise<RecoveryReport> {
  const { plan, desk } = run
  const snapshot = run.onward?.snapshot ?? (await take(run).catch((error: unknown) => fail(run, error)))
  if (snapshot === undefined) {
    const result = await close(run, { how: 'stopped', why: 'stopped before anything was resumed' })
    await tellEnd(run, result)
    return result
  }
  if (plan.dryRun) {
    const result = await close(run, { how: 'dryRun' })
    await tellPreview({ ...run, snapshot }, result)
    return result
  }
  await condition(allHandlersFinished)
  for (let thread = run.onward?.thread; ;) {
    const { resolved } = desk
    const end = await work({ ...run, snapshot, thread }).catch((error: unknown) => fail(run, error))
    // A row that somebody resolved meanwhile may have to be resumed.
    if (end.how !== 'finished' || end.giveUp || (await desk.close(resolved))) {
      const result = await close(run, end)
      await tellEnd(run, result)
      return result
    }
    thread = newThread()
  }
}

async function work(run: Planned & { snapshot: Snapshot; thread: Thread | undefined }): Promise<SendingEnd> {
  const { plan, snapshot, progress, control, thread, ...parties } = run
  const end = await resumeAll({
    ...parties,
    plan,
    snapshot,
    progress,
    control,
    ...(thread && { thread }),
    continueWith: async (thread) => {
      const onward: Onward = { plan, snapshot, thread, progress, paused: control.paused }
      return await continueAsNew<typeof recoverSubscriptions>({ onward })
    },
  })
  if (end.how === 'stopped') await lookToTheEnd(run)
  return end
}

/** Undefined where the run was stopped meanwhile. */
async function take({ plan, progress, show, control }: Planned): Promise<Snapshot | undefined> {
  for (;;) {
    await control.mayGoOn()
    if (control.stopping) return undefined
    progress.phase = 'reading the list'
    show()
    const snapshot = await control.untilInterrupted(() =>
      snapshotRecovery.executeWithOptions({ summary: 'read what needs attention' }, [
        { ...refOf(plan), limits: progress.limits },
      ]),
    )
    if (snapshot === 'interrupted') continue
    progress.snapshot = snapshot
    show()
    return snapshot
  }
}

/** The run ends as failed, but not without its report. */
async function fail(run: Planned, error: unknown): Promise<never> {
  onlyFailures(error)
  const why = rootCause(error) ?? String(error)
  const { counts } = await close(run, { how: 'failed', why })
  run.marks.set({ verdict: 'failed', needsPerson: true })
  const after = `${counts.done} recovered, ${counts.unknown} unknown: the next recovery looks first.`
  throw ApplicationFailure.nonRetryable(`${why.replace(/[.]?$/, '.')} ${after}`, 'RecoveryFailed')
}

async function close(run: Planned, end: RecoveryEnd): Promise<RecoveryReport> {
  const { plan, desk, progress, show } = run
  await desk.close()
  progress.phase = 'reporting'
  show()
  const { how, why } = end
  const input = { ...refOf(plan), how, ...(why !== undefined && { why }) }
  const result = await closeRecovery.executeWithOptions({ summary: 'write the report' }, [input])
  desk.result = result
  progress.counts = result.counts
  progress.summary = result.summary
  progress.phase = 'ended'
  show()
  return result
}
