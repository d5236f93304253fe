import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity'
import { markGap } from '../changes/end-of-run.ts'
import { showTestMode } from '../changes/probe-mode.ts'
import type { ChangeRun } from '../changes/run-notes.ts'
import type { SendChanges } from '../changes/send-changes.ts'
import { type ChangeWork, Segment, type SegmentInput, type SendStep } from './change-segment.ts'
import type { ActivityDeps } from './deps.ts'
import { NotWoken } from './import-errors.ts'
import type { RunRates } from './run-rates.ts'
import { withHeartbeat } from './with-heartbeat.ts'

/** A heartbeat is at most so old, so that a restored ledger is at most so much further behind than it says. */
const heartbeatAgeSeconds = 5

export interface SendDeps {
  deps: ActivityDeps
  rates: RunRates
  sendChanges: SendChanges
}

/**
 * Sends what a run has staged, and settles what became of it, for some time or to the end. Safe to be tried again:
 * every request is claimed in the ledger before it leaves, and one without an answer is looked up, never repeated.
 * Stopping it takes no more changes and awaits those on their way.
 */
export async function sendSegment(
  options: SendDeps & {
    plan: ChangeRun
    work: ChangeWork
    input: SegmentInput
    /** The run's share of the process's rate. */
    requestsPerSecond?: number | undefined
  },
): Promise<SendStep> {
  const { deps, rates, plan, input, requestsPerSecond } = options
  const { ledger } = deps.state
  if (!deps.mayWrite(activityInfo().workflowExecution?.workflowId ?? '')) throw new NotWoken(plan)
  const billing = rates.of({ run: plan.run, requestsPerSecond })
  const signal = cancellationSignal()
  if (plan.identity.mode === 'test') await showTestMode({ billing, signal })
  await closeGap(options)
  const segment = new Segment({ ...options, ledger, input, billing, signal })
  const step = await withHeartbeat({ report: () => heartbeat(segment.progress), work: () => segment.run() })
  const { ended, counts } = step
  deps.observer.did({ did: 'sent', run: plan.run, kind: options.work.kind.name, ended, counts })
  return step
}

/** Where the ledger is behind what the run was told, a backup was restored: what it lacks may have been sent. */
async function closeGap({
  deps,
  plan: { run },
  input,
  requestsPerSecond = deps.requestsPerSecond,
}: {
  deps: ActivityDeps
  plan: ChangeRun
  input: SegmentInput
  requestsPerSecond?: number | undefined
}): Promise<void> {
  const { ledger } = deps.state
  const told = activityInfo().heartbeatDetails as { claims?: unknown } | undefined
  const claims = Math.max(input.claims, typeof told?.claims === 'number' ? told.claims : 0)
  if ((await ledger.claims({ run })) >= claims) return
  const sinceTold = Math.ceil(requestsPerSecond * heartbeatAgeSeconds) + deps.concurrency
  await markGap({ ledger, run, claims: claims + sinceTold })
}
