import type { LedgerRow, RowPatch } from '../../state/ledger/row.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import { move } from '../transitions.ts'
import { hasFailed, type Outcome } from '../outcomes.ts'

/**
 * Leaves what a run has not sent when it ends for good: reported as not tried, and free for another run.
 * What is proven absent but was not sent again is among them. Gives their number.
 */
export function leaveUntried({
  ledger,
  run,
  why,
  which = {},
  now = Date.now,
}: {
  ledger: Ledger
  run: string
  /** For people: the bound or the breaker that ended the run. */
  why: string
  /** Only those of a lane, or only those that were never sent. */
  which?: { lane?: string; unsent?: boolean }
  now?: () => number
}): Promise<number> {
  const outcome: Outcome = 'notTried'
  // What was sent without an answer, and was to be sent once more, was tried: it stays, and counts as unknown.
  const exceptOutcome: Outcome = 'repeatable'
  return ledger.moveAll({
    run,
    from: 'staged',
    exceptOutcome,
    ...which,
    patch: { state: 'dropped', outcome, error: why, closedAt: now() },
  })
}

/**
 * Ends what a run of resumes leaves, for good: the next one begins with a snapshot of its own. What fell back and
 * would have been tried again is for a person, what was never sent is not tried, and every key is free but of what
 * is unknown.
 */
export async function endResumes({
  ledger,
  run,
  why,
  lane,
  now = Date.now,
}: {
  ledger: Ledger
  run: string
  why: string
  /** Only of this lane. */
  lane?: string
  now?: () => number
}): Promise<void> {
  const which = lane === undefined ? {} : { lane }
  for await (const row of ledger.rows({ run, state: 'staged' }))
    if (hasFailed(row) && (lane === undefined || row.lane === lane))
      await leaveStaged({ ledger, row, why, now })
  await leaveUntried({ ledger, run, why, which, now })
  await ledger.moveAll({ run, from: 'parked', patch: { holdsKey: false }, ...which })
}

/**
 * Leaves one that is staged, whatever becomes of the others: what fell back is for a person, what was never sent is
 * not tried.
 */
export async function leaveStaged({
  ledger,
  row,
  why,
  patch = {},
  now,
}: {
  ledger: Ledger
  row: LedgerRow
  why: string
  patch?: Pick<RowPatch, 'answer' | 'lookedAt'>
  now: () => number
}): Promise<void> {
  const left = { ...patch, holdsKey: false }
  if (hasFailed(row)) {
    const error = `${row.error}; ${why}`
    const outcome = row.outcome as Outcome
    await move({ ledger, row, to: 'parked', by: 'end', outcome, patch: { ...left, error } })
    return
  }
  const untried = { ...left, error: why, closedAt: now() }
  await move({ ledger, row, to: 'dropped', by: 'end', outcome: 'notTried', patch: untried })
}
