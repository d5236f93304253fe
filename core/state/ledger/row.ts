import type { Selectable, Updateable } from 'kysely'
import type { ChangeState, ChangeTable, Mode } from '../tables.ts'

/** One change in the ledger. Times are milliseconds since 1970, by this machine's clock. */
export interface LedgerRow {
  id: number
  run: string
  /** Its number in the run, from 1: the row of a file, or the position in a snapshot. */
  row: number
  workspace: string
  mode: Mode
  kind: string
  key: string
  generation: number
  holdsKey: boolean
  breakerKey: string
  body: string
  state: ChangeState
  claims: number
  sends: number
  /** Requests of earlier runs that may have taken effect and count here too (resumes). */
  attemptsBefore: number
  notBefore: number
  sentAt: number | null
  answeredAt: number | null
  closedAt: number | null
  answerId: string | null
  answer: string | null
  outcome: string | null
  error: string | null
  unknownSince: number | null
  lookups: number
  checkedAt: number | null
  before: string | null
  resolvedBy: string | null
  resolvedWhy: string | null
}

/** The columns that a transition may write; those left out stay as they are. */
export type RowPatch = Partial<
  Pick<
    LedgerRow,
    | 'state'
    | 'holdsKey'
    | 'notBefore'
    | 'sentAt'
    | 'answeredAt'
    | 'closedAt'
    | 'answerId'
    | 'answer'
    | 'outcome'
    | 'error'
    | 'unknownSince'
    | 'lookups'
    | 'checkedAt'
    | 'before'
    | 'resolvedBy'
    | 'resolvedWhy'
    | 'claims'
    | 'sends'
  >
>

const columns = {
  state: 'state',
  holdsKey: 'holds_key',
  notBefore: 'not_before',
  sentAt: 'sent_at',
  answeredAt: 'answered_at',
  closedAt: 'closed_at',
  answerId: 'answer_id',
  answer: 'answer',
  outcome: 'outcome',
  error: 'error',
  unknownSince: 'unknown_since',
  lookups: 'lookups',
  checkedAt: 'checked_at',
  before: 'before',
  resolvedBy: 'resolved_by',
  resolvedWhy: 'resolved_why',
  claims: 'claims',
  sends: 'sends',
} as const satisfies Record<keyof RowPatch, keyof ChangeTable>

export function toColumns(patch: RowPatch): Updateable<ChangeTable> {
  const entries = Object.entries(patch).map(([name, value]) => [
    columns[name as keyof RowPatch],
    toValue(value),
  ])
  return Object.fromEntries(entries) as Updateable<ChangeTable>
}

function toValue(value: RowPatch[keyof RowPatch]) {
  if (typeof value === 'boolean') return Number(value)
  // PostgreSQL stores neither NUL nor half a surrogate pair. What a patch contains is shown and never compared.
  return typeof value === 'string' ? value.replaceAll('\0', '\uFFFD').toWellFormed() : value
}

export function toRow(row: Selectable<ChangeTable>): LedgerRow {
  return {
    id: row.id,
    run: row.run,
    row: row.row,
    workspace: row.workspace,
    mode: row.mode,
    kind: row.kind,
    key: row.key,
    generation: row.generation,
    holdsKey: row.holds_key === 1,
    breakerKey: row.breaker_key,
    body: row.body,
    state: row.state,
    claims: row.claims,
    sends: row.sends,
    attemptsBefore: row.attempts,
    notBefore: row.not_before,
    sentAt: row.sent_at,
    answeredAt: row.answered_at,
    closedAt: row.closed_at,
    answerId: row.answer_id,
    answer: row.answer,
    outcome: row.outcome,
    error: row.error,
    unknownSince: row.unknown_since,
    lookups: row.lookups,
    checkedAt: row.checked_at,
    before: row.before,
    resolvedBy: row.resolved_by,
    resolvedWhy: row.resolved_why,
  }
}
