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

/** Counts what the ledger holds of a run. `leftOut`: what a bound kept from being staged. */
export async function summarize({
  ledger,
  run,
  leftOut = 0,
}: {
  ledger: Ledger
  run: string
  leftOut?: number
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
  for (const { state, outcome, number, withId } of await ledger.counts({ run })) {
    counts[placeOf({ state, outcome })] += number
    if (state === 'done') doneWithoutId += number - withId
    if (outcome !== null) outcomes[outcome] = (outcomes[outcome] ?? 0) + number
  }
  return { counts, outcomes, doneWithoutId }
}

/** Where a change is counted in a report. */
export function placeOf({ state, outcome }: Pick<LedgerRow, 'state' | 'outcome'>): keyof ReportCounts {
  if (state === 'sending') return 'unknown'
  if (state === 'dropped') return outcome === 'notTried' ? 'notTried' : 'skipped'
  return state
}
