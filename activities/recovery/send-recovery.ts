import { OldLedgerError } from '../../core/state/errors.ts'
import { createResumeKind } from '../../core/changes/kinds/resume-subscription.ts'
import { toMs } from '../../core/runs/duration.ts'
import type { RecoveryLimits } from '../../core/recoveries/input.ts'
import { leaseOf, leasesOf, type RecoveryPlan, waitsOf } from '../../core/recoveries/input.ts'
import { endOf, refusalOf } from '../../core/recoveries/refusal.ts'
import type { SendInput, SendStep } from '../../core/changes/send/sending.ts'
import type { RecoveryNotes } from '../../core/recoveries/open.ts'
import type { StepContext } from '../step.ts'
import { type SendDeps, sendSegment } from '../changes/send-segment.ts'

/** Resumes the staged subscriptions of a recovery and looks up the outcome; see `sendSegment`. */
export function createSendRecovery(options: SendDeps) {
  return async function sendRecovery(
    context: StepContext,
    input: SendInput & { plan: RecoveryPlan; limits: RecoveryLimits },
  ): Promise<SendStep> {
    const { plan, limits } = input
    await context.takeLeases(leasesOf(plan), plan.execution)
    const { snapshot } = await context.notes.read<RecoveryNotes>(plan.run)
    // It may have been stopped before its snapshot, and then has staged nothing.
    if (snapshot === undefined && input.lookupsOnly !== true)
      throw new OldLedgerError({ lacks: 'what this run has staged' })
    const { staged = 0 } = snapshot ?? {}
    const { run, settleMs, verifyAfter, breakerWaits } = plan
    const work = {
      run,
      kind: createResumeKind({
        refuses: (reasons) => refusalOf({ plan, ...reasons }),
        attempts: plan.attempts,
        ends: () => endOf(plan, Date.now()),
      }),
      settleMs,
      verifyMs: toMs(verifyAfter),
      attempts: { most: plan.attempts, waitsMs: waitsOf(plan) },
      canarySize: { size: plan.canary },
      breakerWaitsMs: breakerWaits?.map(toMs),
    }
    const { requestsPerSecond } = limits
    const lease = { name: leaseOf(plan), owner: plan.execution }
    return await sendSegment({ ...options, context, plan, work, input, lease, requestsPerSecond, staged })
  }
}
