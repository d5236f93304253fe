import type { Billing } from '../billing/client.ts'
import type { Ledger } from '../state/ledger.ts'
import type { LedgerRow } from '../state/ledger-row.ts'
import { parseBody } from './body.ts'
import type { ChangeKind, Seen } from './change-kind.ts'

export interface LookUpDeps {
  ledger: Ledger
  kind: ChangeKind
  billing: Billing
  signal?: AbortSignal
}

/** Looks what became of a change, knowing which records under its key are other changes' of the ledger. */
export async function lookUp({ ledger, kind, billing, signal }: LookUpDeps, row: LedgerRow): Promise<Seen> {
  if (kind.lookUp === undefined) throw new TypeError(`${kind.name} can't be looked up`)
  const { workspace, mode, key } = row
  const holders = await ledger.holders({ workspace, mode, kind: kind.name, keys: [key] })
  const isOther = ({ id, state, answerId }: LedgerRow) =>
    id !== row.id && (answerId !== null || state === 'done')
  const others = holders.filter(isOther).map(({ answerId }) => answerId)
  return await kind.lookUp({ billing, body: parseBody(row), before: row.before, others, signal })
}
