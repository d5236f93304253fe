import type { Body } from '../billing/client.ts'
import { parseLossless } from '../billing/lossless-json.ts'
import type { LedgerRow } from '../state/ledger/row.ts'

/**
 * The largest body that is sent, in bytes. The system takes a request of this size from the process at once, so that it
 * cannot leave later than its claim allows.
 */
export const maxBodyBytes = 64 * 1024

/** The body of a change as it is sent; numbers keep their digits. */
export const parseBody = ({ body }: Pick<LedgerRow, 'body'>): Body => parseLossless(body) as Body
