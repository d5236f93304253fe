import type { Selectable } from 'kysely'
import type { ChangeTable } from '../schema.ts'

/** One change in the ledger. */
export type LedgerRow = Selectable<ChangeTable>

type Fixed =
  | 'id'
  | 'run'
  | 'row'
  | 'workspace'
  | 'mode'
  | 'kind'
  | 'key'
  | 'generation'
  | 'body'
  | 'breakerKey'
  | 'phase'

/** The columns that a transition may write; those left out stay as they are. */
export type RowPatch = Partial<Omit<LedgerRow, Fixed | 'attemptsBefore'>>

/** PostgreSQL stores neither NUL nor half a surrogate pair. What a patch contains is shown and never compared. */
export const storable = (patch: RowPatch): RowPatch =>
  Object.fromEntries(
    Object.entries(patch).map(([name, value]) => [
      name,
      typeof value === 'string' ? value.replaceAll('\0', '\uFFFD').toWellFormed() : value,
    ]),
  )
