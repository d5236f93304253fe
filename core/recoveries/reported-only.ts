import type { ReportSummary } from '../changes/report.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { RecoveryPlan } from './plan.ts'
import { isReason } from './reasons.ts'

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

/** A summary without the rows that the run only reports. */
export const withoutReported = (summary: ReportSummary, reported: number): ReportSummary => ({
  ...summary,
  counts: { ...summary.counts, parked: summary.counts.parked - reported },
})
