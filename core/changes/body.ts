import type { Body } from '../billing/client.ts'
import { isRawNumber, isRecord, numberText, parseLossless } from '../billing/lossless-json.ts'
import { canonicalDecimal, textOf } from './compare-fields.ts'
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

/**
 * Whether two bodies ask for different values. A spreadsheet that is saved again may have its columns in another order,
 * `10` for `10.00`, and an `e` and an accent for `é`.
 */
export const asksForOther = (one: string, other: string): boolean =>
  one !== other && canonicalOf(one) !== canonicalOf(other)

const canonicalOf = (body: string): string => JSON.stringify(canonical(parseLossless(body)))

function canonical(value: unknown): unknown {
  if (typeof value === 'string') return value.normalize('NFC')
  if (typeof value === 'number' || isRawNumber(value)) return { number: canonicalDecimal(numberText(value)) }
  if (Array.isArray(value)) return value.map(canonical)
  if (!isRecord(value)) return value
  const fields = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(fields.map(([name, field]) => [name, canonical(field)]))
}
