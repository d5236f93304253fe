import {
  CancellationScope,
  allHandlersFinished,
  condition,
  proxyActivities,
  type WorkflowInfo,
  workflowInfo,
} from '@temporalio/workflow'
import type { SendStep } from '../../core/changes/send/segment.ts'
import type { Activities } from '../../activities/index.ts'
import type { Snapshot } from '../../core/recoveries/run-files.ts'
import type { RecoveryPlan } from '../../core/recoveries/plan.ts'
import type { Desk } from './operator.ts'
import type { RecoveryProgress } from '../recovery-details.ts'
import { refOf } from '../ref-of.ts'
import type { RunControl } from '../run/control.ts'
import { newThread, type Sending, type SendingEnd, sendSome, type Thread } from './send-loop.ts'
import { sendingPatience } from '../run/activity-options.ts'

const { sendRecovery } = proxyActivities<Activities>(sendingPatience)
const { leaveResumes } = proxyActivities<Activities>({
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '5s',
  retry: { initialInterval: '1s', maximumInterval: '30s', maximumAttempts: 20 },
})

/** Of the waits that a run names, at most this part is added so that what is due soon after goes with it. */
const waitShare = 0.1
const longestGrainMs = 60_000

const lookSeconds = 60

export interface RecoverySending {
  plan: RecoveryPlan
  snapshot: Snapshot
  progress: RecoveryProgress
  show: () => void
  control: RunControl
  desk: Desk
  /** What an execution before this one handed on: the canary is over then. */
  thread?: Thread
  /** Begins a new execution of the workflow; never returns. */
  continueWith: (thread: Thread) => Promise<never>
}

/** Resumes what was staged: asks a person where one is to be asked, the canary of each reason first, then the rest. */
export async function resumeAll(run: RecoverySending): Promise<SendingEnd> {
  const { plan, snapshot, desk, control } = run
  const sending = toSending(run)
  if (run.thread === undefined) {
    if (snapshot.open > 0 && plan.approval) {
      const isApproved = await desk.ask({ what: 'approval', seconds: plan.approvalMs / 1000 })
      const why = control.stopping ? stopped : 'nobody approved in time'
      if (!isApproved) return { how: 'stopped', giveUp: false, why }
    }
    for (let rows: readonly number[] = snapshot.canary; rows.length > 0;) {
      let next: readonly number[] = []
      const afterCanary = (step: SendStep) => {
        next = step.nextCanary ?? []
        return leaveFailed(run, step)
      }
      const end = await sendSome({ ...sending, rows, afterCanary })
      if (end !== undefined) return end
      rows = next
    }
  }
  const beforeSegment = () => continueWhereLong(run, sending.thread)
  return (await sendSome({ ...sending, beforeSegment })) ?? { how: 'finished', giveUp: false }
}

const stopped = 'stopped by a person'

function toSending(run: RecoverySending): Sending {
  const { plan, snapshot, progress, show, control, desk, thread = newThread() } = run
  const { attended, approvalMs, firstWaitMs, verifyMs } = plan
  return {
    progress,
    show,
    control,
    desk,
    thread,
    open: snapshot.open,
    attended,
    approvalSeconds: approvalMs / 1000,
    stopped,
    leastWaitMs: Math.min(waitShare * Math.min(firstWaitMs, verifyMs), longestGrainMs),
    send: (input, summary) => {
      delete progress.nextAt
      return sendRecovery.executeWithOptions({ summary }, [
        { ...refOf(plan), limits: progress.limits, ...input },
      ])
    },
    afterStep: async (step) => {
      if (step.nextAt !== undefined) progress.nextAt = new Date(step.nextAt).toISOString()
      if (step.ended === 'maxChanges') {
        const why = `only ${progress.limits.maxSubscriptions} are resumed (maxSubscriptions)`
        await leaveResumes.executeWithOptions({ summary: 'leave what is beyond the bound' }, [
          { ...refOf(plan), why },
        ])
        return 'goOn'
      }
      return undefined
    },
  }
}

/** What of a reason has failed in its canary is left, and the other reasons go on. */
async function leaveFailed(
  { plan, progress, show }: RecoverySending,
  { failedCanaries }: SendStep,
): Promise<undefined> {
  if (failedCanaries.length === 0) return
  progress.failedCanaries = [...progress.failedCanaries, ...failedCanaries]
  show()
  const why = 'all that went first for this reason failed (canary)'
  const summary = `leave ${failedCanaries.join(', ')}`
  await leaveResumes.executeWithOptions({ summary }, [{ ...refOf(plan), lanes: failedCanaries, why }])
}

/**
 * Whether a new execution is to begin: by the plan's bound of events, or because Temporal asks for one, which it also
 * does for a history that is large in bytes or near the most updates an execution takes (2,000).
 */
export const isHistoryLong = (
  { historyLength, continueAsNewSuggested }: Pick<WorkflowInfo, 'historyLength' | 'continueAsNewSuggested'>,
  { eventsPerExecution }: Pick<RecoveryPlan, 'eventsPerExecution'>,
): boolean => continueAsNewSuggested || historyLength >= eventsPerExecution

async function continueWhereLong({ plan, control, continueWith }: RecoverySending, thread: Thread) {
  if (!isHistoryLong(workflowInfo(), plan)) return
  await condition(allHandlersFinished)
  // Somebody may have stopped it meanwhile, and the next execution would not know.
  if (control.stopping) return
  await continueWith(thread)
}

/** After a stop: nothing more is resumed, and what was is looked at, until all is seen or somebody stops that too. */
export async function lookToTheEnd(
  run: Pick<RecoverySending, 'plan' | 'progress' | 'show' | 'control'>,
): Promise<void> {
  const { plan, progress, show, control } = run
  const before = control.stops
  const isStoppedAgain = () => control.stops > before
  while (!isStoppedAgain() && (progress.counts?.unknown ?? 0) > 0) {
    progress.phase = 'looking'
    show()
    const scope = new CancellationScope()
    const input = { seconds: lookSeconds, breakers: {}, claims: 0, looksOnly: true }
    const looking = scope.run(() =>
      sendRecovery.executeWithOptions({ summary: 'look what became of the last ones' }, [
        { ...refOf(plan), limits: progress.limits, ...input },
      ]),
    )
    const step = await Promise.race([looking, condition(isStoppedAgain)])
    if (step === undefined) {
      scope.cancel()
      // Cancelled, or done all the same: the report tells from the ledger.
      await looking.catch(() => undefined)
      return
    }
    progress.counts = step.counts
    if (step.nextAt === undefined) continue
    progress.nextAt = new Date(step.nextAt).toISOString()
    show()
    await condition(isStoppedAgain, Math.max(1, step.nextAt - Date.now()))
  }
}
