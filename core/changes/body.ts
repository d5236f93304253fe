import type { Body } from '../billing/client.ts'
import { parseLossless } from '../billing/lossless-json.ts'
import { textOf } from './compare-fields.ts'
import type { LedgerRow } from '../state/ledger/row.ts'

/**
 * The largest body that is sent, in bytes. The system takes a request of this size from the process at once, so that it
 * cannot leave later than its claim allows.
 */
export const maxBodyBytes = 64 * 1024

/** The body of a change as it is sent; numbers keep their digits. */
export const parseBody = ({ body }: Pick<LedgerRow, 'body'>): Body => parseLossless(body) as Body

/** The id of the record to change, and the fields to send. */
export function targetOf(body: Body): { id: string; fields: Body } {
  const { id, ...fields } = body
  return { id: textOf(id), fields }
}

/**
 * How many requests of a change may have taken effect, including those of earlier runs where they count. Hard bounds
 * apply to this number: it grows when a change is claimed and shrinks only when a request certainly had no effect.
 */
export const attemptsUsed = ({
  attemptsBefore,
  sends,
}: Pick<LedgerRow, 'attemptsBefore' | 'sends'>): number => attemptsBefore + sends
