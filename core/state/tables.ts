/** The tables of state.db for kysely. Times are milliseconds since 1970, by this machine's clock. */
import type { Generated } from 'kysely'

export interface StateTables {
  store: StoreTable
  leases: LeaseTable
  watermarks: WatermarkTable
  changes: ChangeTable
  senders: SenderTable
  workers: WorkerTable
  publications: PublicationTable
}

export interface StoreTable {
  id: string
  created_at: number
  /** On PostgreSQL only: the id of the data folder whose files belong to this state. */
  files?: string | null
  /** Its path and machine, for people. */
  files_place?: string | null
}

/** On PostgreSQL only: the workers that use the state. */
export interface WorkerTable {
  /** `pid@host`. */
  worker: string
  /** The id of its data folder, and its path and machine for people. */
  files: string
  files_place: string
  seen_at: number
}

/** On PostgreSQL only: see publications.ts. */
export interface PublicationTable {
  id: Generated<number>
  note: string
  noted_at: number
}

export interface LeaseTable {
  name: string
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
  seen_claims: number
}

/** Who may claim changes of a run: see ledger/senders.ts. */
export interface SenderTable {
  run: string
  token: string
  since: number
}

export type Mode = 'live' | 'test'

/** The states of a change. The transitions between them are in core/changes/transitions.ts. */
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
  /** 0; one higher each time a key is sent again on purpose. */
  generation: number
  /** 0 if another change may use the key although this one is neither rejected nor dropped. */
  holds_key: number
  /** Changes with the same key share a breaker and a canary; '' for one per run. */
  breaker_key: string
  /** JSON text exactly as it is sent. */
  body: string
  state: ChangeState
  /** How often it was claimed, including claims whose request never left. */
  claims: number
  /** How often a request may have left. */
  sends: number
  /** Requests of earlier runs that may have taken effect and count against the bound of this one (resumes). */
  attempts: number
  /** It must not be sent before this time. */
  not_before: number
  sent_at: number | null
  answered_at: number | null
  /** When it last got an outcome. */
  closed_at: number | null
  /** The id that the service returned or a lookup found. */
  answer_id: string | null
  /** The beginning of the service's answer, or the facts of the last check or lookup. */
  answer: string | null
  /** See core/changes/outcomes.ts. */
  outcome: string | null
  /** Message for the report. */
  error: string | null
  unknown_since: number | null
  lookups: number
  checked_at: number | null
  /** JSON: facts of the check just before the request, or the ids that existed at staging. */
  before: string | null
  resolved_by: string | null
  resolved_why: string | null
}
