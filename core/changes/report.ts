import type { LedgerRow } from '../state/ledger/row.ts'
import type { ReportCounts } from '../runs/view/counts.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { ChangeKind } from './change-kind.ts'
import { isDone, isDoneEarlier } from './outcomes.ts'

export interface ReportSummary {
  counts: ReportCounts
  /** Number of changes by outcome (outcomes.ts). */
  outcomes: Record<string, number>
  /** Number of changes done without an id in the service's answer. */
  doneWithoutId: number
  /** Number of changes done that a person resolved, as existing or as absent. */
  doneResolved: number
}

export const noCounts: ReportCounts = {
  staged: 0,
  done: 0,
  rejected: 0,
  unknown: 0,
  parked: 0,
  skipped: 0,
  notTried: 0,
}

/** Counts the changes of a run. */
export async function summarize({
  ledger,
  run,
  staged = 0,
}: {
  ledger: Ledger
  run: string
  /** Number of changes the run staged. Those missing from the ledger were lost, so they count as unknown. */
  staged?: number
}): Promise<ReportSummary> {
  const counts = { ...noCounts }
  const outcomes: Record<string, number> = {}
  let doneWithoutId = 0
  let doneResolved = 0
  let held = 0
  for (const { state, outcome, number, withId, resolved } of await ledger.counts({ run })) {
    held += number
    counts[placeOf({ state, outcome })] += number
    if (isDone({ state, outcome })) doneWithoutId += number - withId
    if (state === 'done') doneResolved += resolved
    if (outcome !== null) outcomes[outcome] = (outcomes[outcome] ?? 0) + number
  }
  const missing = Math.max(0, staged - held)
  counts.unknown += missing
  if (missing > 0) outcomes['missing'] = missing
  return { counts, outcomes, doneWithoutId, doneResolved }
}

/** Enough for a person to work through at once; the report has all of them. */
const maxParkedRows = 20

/** The first parked rows whose outcome a person may decide. */
export async function rowsInDoubt(of: { ledger: Ledger; run: string; kind: ChangeKind }): Promise<number[]> {
  const { ledger, run, kind } = of
  const rows: number[] = []
  for await (const row of ledger.rows({ run, state: 'parked' })) {
    if (kind.isInDoubt?.(row) === false) continue
    rows.push(row.row)
    if (rows.length === maxParkedRows) break
  }
  return rows
}

/** The report count that a change belongs to. */
export function placeOf({ state, outcome }: Pick<LedgerRow, 'state' | 'outcome'>): keyof ReportCounts {
  // Sent without an answer and due to be sent again: until then it is not known whether it is done.
  if (state === 'sending' || (state === 'staged' && outcome === 'repeatable')) return 'unknown'
  if (isDoneEarlier({ outcome })) return 'done'
  if (state === 'dropped') return outcome === 'notTried' ? 'notTried' : 'skipped'
  return state
}
