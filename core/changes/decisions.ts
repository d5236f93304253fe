import type { Decision } from '../runs/run-files.ts'
import type { Table } from '../runs/view/view.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { ChangeState } from '../state/schema.ts'
import { sentenceFor } from './outcomes.ts'

/** What people decided in a run, corrected decisions included. */
export interface Decided {
  decisions: Decision[]
}

const explained: readonly ChangeState[] = ['rejected', 'unknown', 'parked', 'dropped']

/** Why a row is not done, with the person who resolved it, on one line. */
export const explain = ({ state, outcome, error, resolvedBy, resolvedWhy }: LedgerRow): string | null =>
  [
    ...[error ?? (explained.includes(state) ? sentenceFor(outcome) : undefined) ?? []].flat(),
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
