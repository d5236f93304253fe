import type { Body } from '../billing/client.ts'
import { parseLossless } from '../billing/lossless-json.ts'
import type { LedgerRow } from '../state/ledger/row.ts'

/** The body of a change as it is sent; numbers keep their digits. */
export const parseBody = ({ body }: Pick<LedgerRow, 'body'>): Body => parseLossless(body) as Body
