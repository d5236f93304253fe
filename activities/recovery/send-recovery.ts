import { createResumeKind } from '../../core/changes/kinds/resume-subscription.ts'
import { toMs } from '../../core/runs/duration.ts'
import type { RecoveryLimits } from '../../core/recoveries/input.ts'
import { leaseOf, leasesOf, type RecoveryPlan, waitsOf } from '../../core/recoveries/plan.ts'
import { endOf, refusalOf } from '../../core/recoveries/refusal.ts'
import type { SendInput, SendStep } from '../../core/changes/send/sending.ts'
import type { StepContext } from '../step.ts'
import { recoveryGap } from '../../core/recoveries/restored-ledger.ts'
import { type SendDeps, sendSegment } from '../changes/send-segment.ts'

/**
 * Subscriptions that fell back become due one by one; waits of up to this long between them are spent inside the
 * step.
 */
const shortWaitMs = 10_000

/** Resumes the staged subscriptions of a recovery and looks up the outcome; see `sendSegment`. */
export function createSendRecovery(options: SendDeps) {
  return async function sendRecovery(
    context: StepContext,
    input: SendInput & { plan: RecoveryPlan; limits: RecoveryLimits },
  ): Promise<SendStep> {
    const { deps } = options
    const { plan, limits } = input
    await context.takeLeases(leasesOf(plan), plan.execution)
    const { dataDir } = context.folder
    const { lookupsOnly } = input
    const gap = await recoveryGap({ deps: { dataDir, isCopy: deps.shared.isShared }, plan, lookupsOnly })
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
      shortWaitMs,
      canarySize: { size: plan.canary },
      breakerWaitsMs: breakerWaits?.map(toMs),
    }
    const { requestsPerSecond } = limits
    const lease = { name: leaseOf(plan), owner: plan.execution }
    return await sendSegment({ ...options, context, plan, work, input, lease, requestsPerSecond, gap })
  }
}
