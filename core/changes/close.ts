import type { LedgerRow, RowPatch } from '../state/ledger/row.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { transition } from './transitions.ts'
import { mayBeTried, recordedOutcome, type Outcome } from './outcomes.ts'

/**
 * Closes the changes that a run has not sent when it ends for good: they are reported as not tried and free for another
 * run. Includes changes that were proven absent but not sent again. Returns their number.
 */
export function closeUntried({
  ledger,
  run,
  why,
  which = {},
}: {
  ledger: Ledger
  run: string
  /** For the report: the bound or the breaker that ended the run. */
  why: string
  /** Only those of a breaker, or only those that were never sent. */
  which?: { breakerKey?: string; unsent?: boolean }
}): Promise<number> {
  const outcome: Outcome = 'notTried'
  // A change that was sent without an answer and is due to be sent again was tried: it stays and counts as unknown.
  const exceptOutcome: Outcome = 'repeatable'
  return ledger.moveAll({
    run,
    from: 'staged',
    exceptOutcome,
    ...which,
    patch: { state: 'dropped', outcome, error: why, closedAt: ledger.now() },
  })
}

/**
 * Closes what a recovery leaves, for good: the next one begins with a snapshot of its own. Resumes that fell back
 * and were due to be tried again are parked, also where a restored ledger does not know whether they were tried. Resumes that
 * were never sent count as not tried, and all keys except those of unknown changes are released.
 */
export async function closeRemaining({
  ledger,
  run,
  why,
  breakerKey,
}: {
  ledger: Ledger
  run: string
  why: string
  /** Only changes of this breaker. */
  breakerKey?: string
}): Promise<void> {
  const which = breakerKey === undefined ? {} : { breakerKey }
  for await (const row of ledger.rows({ run, state: 'staged' }))
    if (mayBeTried(row) && (breakerKey === undefined || row.breakerKey === breakerKey))
      await closeStaged({ ledger, row, why })
  await closeUntried({ ledger, run, why, which })
  await ledger.moveAll({ run, from: 'parked', patch: { holdsKey: 0 }, ...which })
}

/** Closes one staged change: it is parked if it fell back or may have been, and counts as not tried if it was never sent. */
export async function closeStaged({
  ledger,
  row,
  why,
  patch = {},
}: {
  ledger: Ledger
  row: LedgerRow
  why: string
  patch?: Pick<RowPatch, 'answer' | 'checkedAt'>
}): Promise<void> {
  const released = { ...patch, holdsKey: 0 }
  if (mayBeTried(row)) {
    const error = `${row.error}; ${why}`
    const outcome = recordedOutcome(row)
    await transition({ ledger, row, to: 'parked', by: 'end', outcome, patch: { ...released, error } })
    return
  }
  const untried = { ...released, error: why, closedAt: ledger.now() }
  await transition({ ledger, row, to: 'dropped', by: 'end', outcome: 'notTried', patch: untried })
}

/** Many transitions at once share few commits. */
const rowsAtOnce = 500

/**
 * Releases the changes that an ended run left unsent, because another run sends them instead. Changes that were claimed
 * in the meantime stay as they are.
 */
export async function takeOver({
  ledger,
  rows,
  by,
}: {
  ledger: Ledger
  rows: readonly Pick<LedgerRow, 'id' | 'claims'>[]
  /** The run that sends them. */
  by: string
}): Promise<void> {
  const patch = { error: `taken over by the run ${by}`, closedAt: ledger.now() }
  for (let from = 0; from < rows.length; from += rowsAtOnce)
    await Promise.all(
      rows
        .slice(from, from + rowsAtOnce)
        .map((row) => transition({ ledger, row, to: 'dropped', by: 'end', outcome: 'takenOver', patch })),
    )
}
