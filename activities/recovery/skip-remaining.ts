import { closeRemaining, closeUntried } from '../../core/changes/close.ts'
import { leaseOf, type RecoveryPlan } from '../../core/recoveries/input.ts'
import { endSending } from '../changes/end-sending.ts'
import type { SendDeps } from '../changes/send-segment.ts'
import type { StepContext } from '../step.ts'

interface SkipInput {
  plan: RecoveryPlan
  /** The reasons to skip; absent for all. */
  reasons?: readonly string[]
  why: string
}

/** Skips part of a recovery permanently: the reasons whose canary failed, or all subscriptions not yet resumed. */
export function createSkipRemaining({ deps, attempts }: Pick<SendDeps, 'deps' | 'attempts'>) {
  return async ({ attempt }: StepContext, input: SkipInput): Promise<void> => {
    const { plan, reasons, why } = input
    const { ledger } = deps.state
    const lease = { name: leaseOf(plan), owner: plan.execution, attempt }
    await endSending({ deps, attempts, run: plan.run, lease })
    const options = { ledger, run: plan.run, why }
    if (reasons === undefined) await closeUntried({ ...options, which: { unsent: true } })
    for (const breakerKey of reasons ?? []) await closeRemaining({ ...options, breakerKey })
  }
}
