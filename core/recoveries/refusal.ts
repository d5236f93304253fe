import type { AttentionReason } from '../changes/kinds/resume-subscription.ts'
import { hasPassed } from './next-billing.ts'
import { becauseOf, isReason } from './reasons.ts'
import { isLongEnough, type RecoveryPlan } from './plan.ts'

/** Why a run does not resume a subscription that it had chosen: its reason or its time has changed since. */
export function refusalOf({
  plan,
  now,
  before,
}: {
  plan: RecoveryPlan
  now: AttentionReason
  before: AttentionReason
}) {
  const { reason, since } = now
  if (!isReason(reason) || !plan.reasons.includes(reason))
    return { needsPerson: `its reason is ${reason} now: ${becauseOf(reason)}` }
  // Canary and breaker are kept for each reason: those of another one have not tried it.
  if (reason !== before.reason)
    return { skip: `its reason was ${before.reason} and is ${reason} now: the next run handles it` }
  if (since !== before.since && !isLongEnough(since, plan))
    return { skip: `it needs attention again, since ${since}: not as long as olderThan requires` }
  return undefined
}

/** Why a run resumes nothing more: a date in the past is not sent. */
export function endOf({ nextBilling }: RecoveryPlan, now: number): string | undefined {
  if (nextBilling === undefined || !hasPassed(nextBilling, now)) return undefined
  return `nextBilling ${nextBilling} has passed; start again with a later one`
}
