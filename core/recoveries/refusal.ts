import type { AttentionReason } from '../changes/kinds/resume-subscription.ts'
import { hasPassed } from './next-billing.ts'
import { becauseOf, isReason } from './reasons.ts'
import { isLongEnough, type RecoveryPlan } from './plan.ts'

/** Why a run does not resume what it had chosen: its trouble is another by now than when it was seen before. */
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
    return { skip: `its reason was ${before.reason} and is ${reason} now: the next run takes it as that` }
  if (since !== before.since && !isLongEnough(since, plan))
    return { skip: `it needs attention anew, since ${since}: not for as long as olderThan asks` }
  return undefined
}

/** Why a run resumes nothing more: a date that has passed is not sent. */
export function endOf({ nextBilling }: RecoveryPlan, now: number): string | undefined {
  if (nextBilling === undefined || !hasPassed(nextBilling, now)) return undefined
  return `nextBilling ${nextBilling} has passed; start again with a later one`
}
