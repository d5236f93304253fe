import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { transition } from '../transitions.ts'

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
  now = ledger.now,
}: {
  ledger: Ledger
  rows: readonly Pick<LedgerRow, 'id' | 'claims'>[]
  /** The run that sends them. */
  by: string
  now?: () => number
}): Promise<void> {
  const patch = { error: `taken over by the run ${by}`, closedAt: now() }
  for (let from = 0; from < rows.length; from += rowsAtOnce)
    await Promise.all(
      rows
        .slice(from, from + rowsAtOnce)
        .map((row) => transition({ ledger, row, to: 'dropped', by: 'end', outcome: 'takenOver', patch })),
    )
}
