import type { LedgerRow } from '../state/ledger/row.ts'

/**
 * How many requests of a change may have taken effect, including those of earlier runs where they count. Hard bounds
 * apply to this number: it grows when a change is claimed and shrinks only when a request certainly had no effect.
 */
export const attemptsUsed = ({
  attemptsBefore,
  sends,
}: Pick<LedgerRow, 'attemptsBefore' | 'sends'>): number => attemptsBefore + sends
