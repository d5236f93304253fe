import type { Decision } from '../runs/run-files.ts'
import { formatTime } from '../runs/view/format.ts'
import type { Table } from '../runs/view/view.ts'
import type { LedgerRow } from '../state/ledger/row.ts'

/** What people decided in a run. */
export interface Decided {
  decisions: Decision[]
  resolved: Resolved[]
}

export interface Resolved {
  row: number
  by: string
  why: string
  state: string
}

export const toResolved = ({ row, resolvedBy, resolvedWhy, state }: LedgerRow): Resolved[] =>
  resolvedBy === null ? [] : [{ row, by: resolvedBy, why: resolvedWhy ?? '', state }]

/** An error with the person who resolved it, on one line. */
export const explain = ({ error, resolvedBy, resolvedWhy }: LedgerRow): string | null =>
  [
    ...(error === null ? [] : [error]),
    ...(resolvedBy === null ? [] : [`${resolvedBy}: ${resolvedWhy ?? ''}`]),
  ].join('; ') || null

export function toDecisions({ decisions, resolved }: Decided): Table[] {
  const rows = [
    ...decisions.map(({ at, about, by, why }) => [`${about}, ${formatTime(at)}`, by, why]),
    ...resolved.map(({ row, state, by, why }) => [`row ${row}: ${state}`, by, why]),
  ]
  return rows.length === 0 ? [] : [{ title: 'Decisions', head: ['about', 'who', 'why'], rows }]
}
