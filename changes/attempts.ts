import type { LedgerRow } from '../state/ledger-row.ts'

/**
 * How many requests of a change may have taken effect, those of earlier runs included where they count. A hard bound
 * holds against this number: it grows when a change is claimed, and shrinks only where the request surely did nothing.
 */
export const attemptsUsed = ({
  attemptsBefore,
  sends,
}: Pick<LedgerRow, 'attemptsBefore' | 'sends'>): number => attemptsBefore + sends
