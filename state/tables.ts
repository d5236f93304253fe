/** The tables of state.db as kysely knows them. Times are milliseconds since 1970, this machine's clock. */
import type { Generated } from 'kysely'

export interface StateTables {
  store: StoreTable
  claims: ClaimTable
  watermarks: WatermarkTable
  changes: ChangeTable
}

export interface StoreTable {
  id: string
  created_at: number
}

export interface ClaimTable {
  what: string
  workflow_id: string
  run_id: string
  taken_at: number
}

export interface WatermarkTable {
  workspace: string
  mode: Mode
  resource: string
  filter: string
  destination: string
  at: number
  run: string
  moved_at: number
}

export type Mode = 'live' | 'test'

/** Where a change stands. The moves between them and their rules are in changes/moves.ts. */
export const changeStates = ['staged', 'sending', 'done', 'rejected', 'unknown', 'parked', 'dropped'] as const
export type ChangeState = (typeof changeStates)[number]

export interface ChangeTable {
  id: Generated<number>
  run: string
  row: number
  workspace: string
  mode: Mode
  kind: string
  key: string
  /** 0, or one more for each time that a key is done once more on purpose. */
  generation: number
  /** 0 where the key may be used by another change although this one is neither rejected nor dropped. */
  holds_key: number
  /** What the breaker and the canary are kept for; '' where there is one for the whole run. */
  lane: string
  /** JSON text, digit for digit as it is sent. */
  body: string
  state: ChangeState
  /** How often it was claimed: every claim counts, also one whose request never left. */
  claims: number
  /** How often a request left, or could have left. */
  sends: number
  /** Requests of earlier runs that may have taken effect and count against the bound of this one (resumes). */
  attempts: number
  /** Not to be sent before. */
  not_before: number
  sent_at: number | null
  answered_at: number | null
  /** When it last got an outcome. */
  closed_at: number | null
  /** The id the service gave, or that was found. */
  answer_id: string | null
  /** The beginning of the service's answer. */
  answer: string | null
  /** One word for what became of it, of the change kind's vocabulary. */
  outcome: string | null
  /** What to tell a person. */
  error: string | null
  unknown_since: number | null
  looks: number
  looked_at: number | null
  /** JSON: what the look just before the request saw. */
  before: string | null
  resolved_by: string | null
  resolved_why: string | null
}
