import { activityInfo, cancellationSignal, heartbeat } from '@temporalio/activity'
import { markGap } from '../changes/end-of-run.ts'
import { showTestMode } from '../changes/probe-mode.ts'
import type { SendChanges } from '../changes/send-changes.ts'
import type { ActivityDeps } from './deps.ts'
import { NotWoken } from './import-errors.ts'
import { withHeartbeat } from './import-heartbeat.ts'
import { Segment, type SendInput, type SendStep } from './import-segment.ts'
import { refuseOther } from './open-export.ts'
import type { RunRates } from './run-rates.ts'

/** A heartbeat is at most so old, so that a restored ledger is at most so much further behind than it says. */
const heartbeatAgeSeconds = 5

/**
 * Sends what a run has staged, and settles what became of it, for some time or to the end. Safe to be tried again:
 * every request is claimed in the ledger before it leaves, and one without an answer is looked up, never repeated.
 * Stopping it takes no more changes and awaits those on their way.
 */
export function createSendImport(options: { deps: ActivityDeps; rates: RunRates; sendChanges: SendChanges }) {
  return async function sendImport(input: SendInput): Promise<SendStep> {
    const { deps, rates } = options
    const { plan, limits } = input
    refuseOther({ run: plan.identity, worker: deps.identity })
    if (!deps.mayWrite(activityInfo().workflowExecution?.workflowId ?? '')) throw new NotWoken(plan)
    const billing = rates.of({ run: plan.run, ...limits })
    const signal = cancellationSignal()
    if (plan.identity.mode === 'test') await showTestMode({ billing, signal })
    await closeGap({ deps, input })
    const segment = new Segment({ ...options, input, billing, signal })
    return await withHeartbeat({ report: () => heartbeat(segment.progress), work: () => segment.run() })
  }
}

/** Where the ledger is behind what the run was told, a backup was restored: what it lacks may have been sent. */
async function closeGap({ deps, input }: { deps: ActivityDeps; input: SendInput }): Promise<void> {
  const { run } = input.plan
  const { ledger } = deps.state
  const told = activityInfo().heartbeatDetails as { claims?: unknown } | undefined
  const claims = Math.max(input.claims, typeof told?.claims === 'number' ? told.claims : 0)
  if ((await ledger.claims({ run })) >= claims) return
  const { requestsPerSecond = deps.requestsPerSecond } = input.limits
  const sinceTold = Math.ceil(requestsPerSecond * heartbeatAgeSeconds) + deps.concurrency
  await markGap({ ledger, run, claims: claims + sinceTold })
}
