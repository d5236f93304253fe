import type { Billing } from '../../billing/client.ts'
import { BillingError } from '../../billing/errors.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { parseBody } from '../body.ts'
import type { ChangeKind } from '../change-kind.ts'
import { transition } from '../transitions.ts'

interface Explaining {
  ledger: Ledger
  kind: ChangeKind
  billing: Billing
  now: () => number
  signal?: AbortSignal | undefined
}

/**
 * Looks up why the service refused a change that may have become unnecessary or impossible since its check: the check
 * before sending decides again. The refused request had no effect, so it no longer counts as sent. Undefined, and nothing
 * is changed, if the check would send it or another attempt was faster.
 */
export async function explainRefusal({
  ledger,
  kind,
  billing,
  row,
  now,
  signal,
}: Explaining & { row: LedgerRow }): Promise<'done' | 'parked' | 'dropped' | undefined> {
  const found = await kind.checkBefore?.({
    billing,
    body: parseBody(row),
    signal,
    last: row.before,
    attempts: 0,
  })
  if (found === undefined || !('instead' in found)) return undefined
  const { instead: to, outcome, message, facts } = found
  const at = now()
  const patch = {
    error: `${message}; the service refused it: ${row.error}`,
    sends: row.sends - 1,
    lookups: row.lookups + 1,
    checkedAt: at,
    closedAt: at,
    holdsKey: to === 'done' ? 1 : 0,
    // It shows nothing about sending.
    event: null,
    eventAt: null,
    ...(facts !== undefined && { answer: JSON.stringify(facts) }),
  }
  return (await transition({ ledger, row, to, by: 'lookup', outcome, patch })) ? to : undefined
}

/** The same, just after the refusal. Where the lookup fails or shows nothing, those after the segment do it again. */
export async function explainNow({ id, ...options }: Explaining & { id: number }): Promise<boolean> {
  const row = await options.ledger.byId({ id })
  // Another attempt may have sent it since: then the refusal says nothing about it now.
  if (row?.outcome !== 'refused') return false
  try {
    return (await explainRefusal({ ...options, row })) !== undefined
  } catch (error) {
    if (error instanceof BillingError || options.signal?.aborted === true) return false
    throw error
  }
}
