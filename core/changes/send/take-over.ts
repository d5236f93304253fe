import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { move } from '../transitions.ts'

/** So many moves share few commits, and are soon done. */
const rowsAtOnce = 500

/**
 * Frees changes that a run which has ended left unsent, because another run sends them instead. What has been
 * claimed meanwhile stays where it is.
 */
export async function takeOver({
  ledger,
  rows,
  by,
  now = Date.now,
}: {
  ledger: Ledger
  rows: readonly Pick<LedgerRow, 'id' | 'sends'>[]
  /** The run that sends them. */
  by: string
  now?: () => number
}): Promise<void> {
  const patch = { error: `the run ${by} has taken it over`, closedAt: now() }
  for (let from = 0; from < rows.length; from += rowsAtOnce)
    await Promise.all(
      rows
        .slice(from, from + rowsAtOnce)
        .map((row) => move({ ledger, row, to: 'dropped', by: 'end', outcome: 'takenOver', patch })),
    )
}
