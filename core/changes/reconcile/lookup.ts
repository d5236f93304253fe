import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import { parseBody } from '../body.ts'
import type { ChangeKind, LookupResult } from '../change-kind.ts'
import { idsBefore } from '../kinds/create-retention.ts'

export interface LookupDeps {
  ledger: Ledger
  kind: ChangeKind
  billing: Billing
  signal?: AbortSignal
}

/** Looks up the outcome of a change, excluding records under its key that belong to other changes of the ledger. */
export async function lookUp(
  { ledger, kind, billing, signal }: LookupDeps,
  row: LedgerRow,
): Promise<LookupResult> {
  if (kind.lookUp === undefined) throw new TypeError(`${kind.name} can't be looked up`)
  const { workspace, mode, key } = row
  const holders = await ledger.holders({ workspace, mode, kind: kind.name, keys: [key] })
  const isOther = ({ id, state, answerId }: LedgerRow) =>
    id !== row.id && (answerId !== null || state === 'done')
  const others = holders.filter(isOther).flatMap(({ answerId, before }) => [answerId, ...idsBefore(before)])
  return await kind.lookUp({ billing, body: parseBody(row), before: row.before, others, signal })
}
