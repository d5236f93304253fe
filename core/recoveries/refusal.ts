import type { AttentionReason } from '../changes/kinds/resume-subscription.ts'
import { hasPassed } from './next-billing.ts'
import { becauseOf, isReason } from './reasons.ts'
import { isLongEnough, type RecoveryPlan } from './plan.ts'

/**
 * Explains why a run no longer resumes a subscription that it had selected: its reason, or the time since when it
 * needs attention, has changed.
 */
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
  // Canary and breaker are per reason, and those of the new reason have not covered this subscription.
  if (reason !== before.reason)
    return { skip: `its reason was ${before.reason} and is ${reason} now: the next run handles it` }
  if (since !== before.since && !isLongEnough(since, plan))
    return { skip: `it needs attention again, since ${since}: not as long as olderThan requires` }
  return undefined
}

/** Explains why a run resumes nothing more: its next billing date has passed, and a past date is never sent. */
export function endOf({ nextBilling }: RecoveryPlan, now: number): string | undefined {
  if (nextBilling === undefined || !hasPassed(nextBilling, now)) return undefined
  return `nextBilling ${nextBilling} has passed; start again with a later one`
}
