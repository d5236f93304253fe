import type { Body } from '../billing/client.ts'
import { parseLossless } from '../billing/lossless-json.ts'
import type { LedgerRow } from '../state/ledger/row.ts'

/** The body of a change as it is sent, digit for digit. */
export const parseBody = ({ body }: Pick<LedgerRow, 'body'>): Body => parseLossless(body) as Body
