import type { AttentionReason } from '../changes/kinds/resume-subscription.ts'
import { type RecoveryPlan, hasPassed, isLongEnough } from './input.ts'
import { becauseOf, isReason } from './reasons.ts'
import type { LedgerRow } from '../state/ledger/row.ts'

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

type Row = Pick<LedgerRow, 'state' | 'outcome' | 'sends' | 'attemptsBefore' | 'breakerKey'>

/**
 * Whether a run only reports a subscription and never set out to resume it: the run does not resume its reason, or
 * earlier runs used up its attempts. Such rows are closed when staged and never sent. All other rows were meant to
 * be resumed and count for the verdict, even if a reason changed on the way or a person asked for another attempt.
 */
export function isReportedOnly(row: Row, plan: Pick<RecoveryPlan, 'reasons' | 'attempts'>): boolean {
  const { state, outcome, sends, attemptsBefore, breakerKey: reason } = row
  if (sends > 0) return false
  if (state !== 'parked') return false
  if (!isReason(reason) || !plan.reasons.includes(reason)) return true
  return outcome === 'attemptsUsedUp' && attemptsBefore >= plan.attempts
}
