import type { LedgerRow } from '../state/ledger/row.ts'
import type { ReportCounts } from '../runs/counts.ts'
import type { Ledger } from '../state/ledger/ledger.ts'

export interface ReportSummary {
  counts: ReportCounts
  /** How many by outcome; see outcomes.ts for the words. */
  outcomes: Record<string, number>
  /** How many are done without an id in the service's answer. */
  doneWithoutId: number
}

/** Counts the changes of a run. */
export async function summarize({
  ledger,
  run,
  leftOut = 0,
  staged = 0,
}: {
  ledger: Ledger
  run: string
  /** How many a bound kept from being staged. */
  leftOut?: number
  /** How many the run staged. Those that the ledger lacks were lost from it, so their state is unknown. */
  staged?: number
}): Promise<ReportSummary> {
  const counts: ReportCounts = {
    staged: 0,
    done: 0,
    rejected: 0,
    unknown: 0,
    parked: 0,
    skipped: 0,
    notTried: leftOut,
  }
  const outcomes: Record<string, number> = leftOut === 0 ? {} : { notTried: leftOut }
  let doneWithoutId = 0
  let held = 0
  for (const { state, outcome, number, withId } of await ledger.counts({ run })) {
    held += number
    counts[placeOf({ state, outcome })] += number
    if (state === 'done') doneWithoutId += number - withId
    if (outcome !== null) outcomes[outcome] = (outcomes[outcome] ?? 0) + number
  }
  const missing = Math.max(0, staged - held)
  counts.unknown += missing
  if (missing > 0) outcomes['missing'] = missing
  return { counts, outcomes, doneWithoutId }
}

/** Where a change is counted in a report. */
export function placeOf({ state, outcome }: Pick<LedgerRow, 'state' | 'outcome'>): keyof ReportCounts {
  // Sent without an answer, and to be sent once more: until then nothing tells whether it is done.
  if (state === 'sending' || (state === 'staged' && outcome === 'repeatable')) return 'unknown'
  if (state === 'dropped') return outcome === 'notTried' ? 'notTried' : 'skipped'
  return state
}
