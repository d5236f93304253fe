import type { LedgerRow, RowPatch } from '../state/ledger/row.ts'
import type { FencingToken } from '../state/ledger/claims.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import { transition } from './transitions.ts'
import { mayBeTried, recordedOutcome, type Outcome } from './outcomes.ts'

interface Ending {
  ledger: Ledger
  run: string
  /** For the report: the bound or the breaker that ended the run. */
  why: string
  /** Only changes of this breaker. */
  breakerKey?: string
  /** As in `MoveAllOptions`: an attempt that was given up closes nothing under a later one. */
  sender?: FencingToken | undefined
}

/**
 * Closes the changes that a run has not sent when it ends for good, or only those that were never sent: they are reported
 * as not tried and free for another run. Includes changes that were proven absent but not sent again. Returns their number.
 */
export function closeUntried({ ledger, why, ...which }: Ending & { unsent?: boolean }): Promise<number> {
  const outcome: Outcome = 'notTried'
  // A change that was sent without an answer and is due to be sent again was tried: it stays and counts as unknown.
  const exceptOutcome: Outcome = 'repeatable'
  const patch = { state: 'dropped', outcome, error: why, closedAt: ledger.now() } as const
  return ledger.moveAll({ ...which, from: 'staged', exceptOutcome, patch })
}

/**
 * Closes what a recovery leaves, for good: the next one begins with a snapshot of its own. Resumes that fell back
 * and were due to be tried again are parked, also where a restored ledger does not know whether they were tried. Resumes that
 * were never sent count as not tried, and all keys except those of unknown changes are released.
 */
export async function closeRemaining(ending: Ending): Promise<void> {
  const { ledger, why, ...which } = ending
  const { run, breakerKey, sender } = which
  for await (const row of ledger.rows({ run, state: 'staged' }))
    if (mayBeTried(row) && (breakerKey === undefined || row.breakerKey === breakerKey))
      await closeStaged({ ledger, row, why, sender })
  await closeUntried(ending)
  await ledger.moveAll({ ...which, from: 'parked', patch: { holdsKey: 0 } })
}

/** Closes one staged change: it is parked if it fell back or may have been, and counts as not tried if it was never sent. */
export async function closeStaged(closing: {
  ledger: Ledger
  row: LedgerRow
  why: string
  patch?: Pick<RowPatch, 'answer' | 'checkedAt'>
  sender?: FencingToken | undefined
}): Promise<void> {
  const { ledger, row, why, sender } = closing
  const released = { ...closing.patch, holdsKey: 0 }
  if (mayBeTried(row)) {
    const patch = { ...released, error: `${row.error}; ${why}` }
    await transition({ ledger, row, to: 'parked', by: 'end', outcome: recordedOutcome(row), patch, sender })
    return
  }
  const patch = { ...released, error: why, closedAt: ledger.now() }
  await transition({ ledger, row, to: 'dropped', by: 'end', outcome: 'notTried', patch, sender })
}

/** Many transitions at once share few commits. */
const rowsAtOnce = 500

/**
 * Releases the changes that an ended run left unsent, because another run sends them instead. Changes that were claimed
 * in the meantime stay as they are. `by`: the run that sends them. `because`: `restore` for those that were sent.
 */
export async function takeOver(options: {
  ledger: Ledger
  rows: readonly Pick<LedgerRow, 'id' | 'claims'>[]
  by: string
  because?: 'end' | 'restore'
}): Promise<void> {
  const { ledger, rows, by: run, because = 'end' } = options
  const patch = { error: `taken over by the run ${run}`, closedAt: ledger.now() }
  const release = (row: (typeof rows)[number]) =>
    transition({ ledger, row, to: 'dropped', by: because, outcome: 'takenOver', patch })
  for (let from = 0; from < rows.length; from += rowsAtOnce)
    await Promise.all(rows.slice(from, from + rowsAtOnce).map(release))
}
