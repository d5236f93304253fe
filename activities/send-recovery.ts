import { createResumeKind } from '../changes/kinds/resume-subscription.ts'
import { defaultLimits } from '../changes/limits.ts'
import { type RecoveryLimits, type RecoveryPlan, waitsOf } from '../recoveries/recovery-plan.ts'
import { endOf, refusalOf } from '../recoveries/refusal.ts'
import type { SegmentInput, SendStep } from './change-segment.ts'
import { claimRecovery } from './open-recovery.ts'
import { recoveryGap } from './recovery-gap.ts'
import { type SendDeps, sendSegment } from './send-segment.ts'

/** Subscriptions that fell back are due one by one: so short a time is waited between two of them here. */
const shortWaitMs = 10_000

/** Resumes what a recovery has staged, and looks what became of it; see `sendSegment`. */
export function createSendRecovery(options: SendDeps) {
  return async function sendRecovery(
    input: SegmentInput & { plan: RecoveryPlan; limits: RecoveryLimits },
  ): Promise<SendStep> {
    const { deps } = options
    const { plan, limits } = input
    await claimRecovery({ deps, plan })
    const gap = await recoveryGap({ deps, plan })
    const { requestsPerSecond, concurrency, maxSubscriptions, maxFailureShare } = limits
    const { run, settleMs, verifyMs, breakerWaitsMs } = plan
    const work = {
      run,
      kind: createResumeKind({
        refuses: (trouble) => refusalOf({ plan, ...trouble }),
        attempts: plan.attempts,
        ends: () => endOf(plan, Date.now()),
      }),
      settleMs,
      verifyMs,
      attempts: { most: plan.attempts, waitsMs: waitsOf(plan) },
      shortWaitMs,
      limits: {
        inFlight: concurrency ?? deps.concurrency,
        maxFailureShare: maxFailureShare ?? defaultLimits.maxFailureShare,
        ...(maxSubscriptions !== undefined && { maxChanges: maxSubscriptions }),
      },
      ...(breakerWaitsMs && { breakerWaitsMs }),
    }
    return await sendSegment({ ...options, plan, work, input, requestsPerSecond, gap })
  }
}
