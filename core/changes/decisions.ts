import type { Decision } from '../runs/run-files.ts'
import type { Table } from '../runs/view/view.ts'
import type { LedgerRow } from '../state/ledger/row.ts'

/** What people decided in a run, corrected decisions included. */
export interface Decided {
  decisions: Decision[]
}

/** An error with the person who resolved it, on one line. */
export const explain = ({ error, resolvedBy, resolvedWhy }: LedgerRow): string | null =>
  [
    ...(error === null ? [] : [error]),
    ...(resolvedBy === null ? [] : [`${resolvedBy}: ${resolvedWhy ?? ''}`]),
  ].join('; ') || null

export function toDecisions({ decisions }: Decided): Table[] {
  const rows = decisions.map((decision) => [
    aboutOf(decision),
    decision.by,
    { time: decision.at },
    decision.why,
  ])
  return rows.length === 0 ? [] : [{ title: 'Decisions', head: ['about', 'who', 'when', 'why'], rows }]
}

function aboutOf({ about, row, exists, confirmed, absent }: Decision): string {
  if (about !== 'row') return about
  if (exists === undefined) return `row ${row}: ${absent === true ? 'does not exist, sent again' : 'dropped'}`
  return `row ${row}: exists as ${exists}, ${confirmed === true ? 'confirmed by the service' : 'not confirmed by the service'}`
}
