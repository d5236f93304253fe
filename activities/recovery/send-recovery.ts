import { createResumeKind } from '../../core/changes/kinds/resume-subscription.ts'
import { defaultLimits } from '../../core/changes/send/limits.ts'
import { leasesOf, type RecoveryLimits, type RecoveryPlan, waitsOf } from '../../core/recoveries/plan.ts'
import { endOf, refusalOf } from '../../core/recoveries/refusal.ts'
import type { SendInput, SendStep } from '../../core/changes/send/send-for.ts'
import type { StepContext } from '../step.ts'
import { recoveryGap } from '../../core/recoveries/ledger-gap.ts'
import { type SendDeps, sendSegment } from '../send-segment.ts'

/** Subscriptions that fell back are due one by one: so short a time is waited between two of them here. */
const shortWaitMs = 10_000

/** Resumes what a recovery has staged, and looks what became of it; see `sendSegment`. */
export function createSendRecovery(options: SendDeps) {
  return async function sendRecovery(
    context: StepContext,
    input: SendInput & { plan: RecoveryPlan; limits: RecoveryLimits },
  ): Promise<SendStep> {
    const { deps } = options
    const { plan, limits } = input
    await context.takeLeases(leasesOf(plan), plan.execution)
    const gap = await recoveryGap({ deps, plan })
    const { requestsPerSecond, concurrency, maxChanges, maxFailureShare } = limits
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
        ...(maxChanges !== undefined && { maxChanges }),
      },
      ...(breakerWaitsMs && { breakerWaitsMs }),
    }
    return await sendSegment({ ...options, context, plan, work, input, requestsPerSecond, gap })
  }
}
