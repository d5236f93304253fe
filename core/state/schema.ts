import type { Generated } from 'kysely'
import { StateError } from './errors.ts'

/**
 * The tables of a state, in `state.db` and on PostgreSQL. Columns are camelCase here and snake_case in the database. Times
 * are milliseconds since 1970 by the store's clock.
 */
export interface StateTables {
  store: StoreTable
  leases: LeaseTable
  changes: ChangeTable
  workers: WorkerTable
  publications: PublicationTable
  notes: NoteTable
  rates: RateTable
}

export interface StoreTable {
  id: string
  /** See `schemaVersion`. */
  version: number
  createdAt: number
  /** Claims that the ledger has lost, as far as its mark had them; and when it was last repaired, 0 if never. */
  forgottenClaims: Generated<number>
  repairedAt: Generated<number>
  /** On PostgreSQL: the id of the place whose files belong to this state, and the place for people. */
  files: string | null
  filesPlace: string | null
}

/** On PostgreSQL: the workers that use the state. */
export interface WorkerTable {
  /** `pid@host` and a random id. */
  worker: string
  /** Its data folder and machine, for people. */
  filesPlace: string
  seenAt: number
}

/** See publications.ts. The columns are those by which publications are found; `body` is the publication as JSON. */
export interface PublicationTable {
  run: string
  resource: string
  destination: string
  /** '' if the export named none. */
  place: string
  location: string
  testMode: number
  /** What the exports that continue one another have in common, as text. */
  series: string
  mode: 'full' | 'incremental' | 'byId'
  startedAt: number
  changesThrough: number | null
  body: string
}

/** See notes.ts. */
export interface NoteTable {
  subject: string
  name: string
  at: number
  /** JSON. */
  body: string
}

/** On PostgreSQL: see rate-shares.ts. */
export interface RateTable {
  /** `all`, or that of a run. */
  name: string
  worker: string
  perSecond: number
  askedAt: number
  pausedUntil: number
}

export interface LeaseTable {
  name: string
  workflowId: string
  runId: string
  takenAt: number
  /** The fencing token of the attempt that may claim changes under this lease; null until one does. */
  token: string | null
  /** When Temporal scheduled that attempt, by its clock. */
  attempt: number
  /** 1: free for anyone. The row stays, so that an attempt from before takes nothing. */
  released: number
}

export type Mode = 'live' | 'test'

/** The states of a change. The transitions between them are in core/changes/transitions.ts. */
export const changeStates = ['staged', 'sending', 'done', 'rejected', 'unknown', 'parked', 'dropped'] as const
export type ChangeState = (typeof changeStates)[number]

/** `fault`: a reply that is not the service's: the service or a gateway is failing. It does not decide the change. */
export type ChangeEvent = 'success' | 'failure' | 'fault'

export interface ChangeTable {
  id: Generated<number>
  run: string
  /** Its number in the run, from 1: the row of a file, or the position in a snapshot. */
  row: number
  workspace: string
  mode: Mode
  kind: string
  key: string
  /** 0; one higher each time a key is sent again on purpose. */
  generation: number
  /** 1, or 0 if another change may use the key although this one is neither rejected nor dropped. */
  holdsKey: number
  /** Changes with the same key share a breaker and a canary; '' for one per run. */
  breakerKey: string
  /** 0 for the canary, which is sent first; 1 for the rest. */
  phase: number
  /** JSON text exactly as it is sent. */
  body: string
  state: ChangeState
  /** How often it was claimed, including claims whose request never left. */
  claims: number
  /** How often a request may have left. */
  sends: number
  /** Requests of earlier runs that may have taken effect and count against the bound of this one (resumes). */
  attemptsBefore: number
  /** It must not be sent before this time. */
  notBefore: number
  sentAt: number | null
  answeredAt: number | null
  /** What its last request told the breaker, and when; null if nothing, or nothing yet. */
  event: ChangeEvent | null
  eventAt: number | null
  /** When it last got an outcome. */
  closedAt: number | null
  /** The id that the service returned or a lookup found. */
  answerId: string | null
  /** JSON: the other ids under which the service has it, if it has done it more than once. */
  otherIds: string | null
  /** The beginning of the service's answer, or the facts of the last check or lookup. */
  answer: string | null
  /** See core/changes/outcomes.ts. */
  outcome: string | null
  /** Message for the report. */
  error: string | null
  unknownSince: number | null
  lookups: number
  checkedAt: number | null
  /** JSON: facts of the check just before the request, or the ids that existed at staging. */
  before: string | null
  resolvedBy: string | null
  resolvedWhy: string | null
}

/** One higher with each change of a released schema, which then needs a migration. */
export const schemaVersion = 1

/**
 * Whether a state has the tables below, by its version: undefined where there are none yet, 0 for the tables of a checkout
 * that did not number them.
 *
 * @throws {StateError} it has other tables
 */
export function isCurrent({ place, version }: { place: string; version: number | undefined }): boolean {
  if (version === undefined) return false
  if (version > schemaVersion)
    throw new StateError(
      'StateTooNewError',
      `${place} was written by a newer version of the connector (its schema has the number ${version}). ` +
        `Run that version, or restore a backup from before the upgrade.`,
    )
  if (version < schemaVersion)
    throw new StateError(
      'StateTooOldError',
      `${place} was written by an earlier checkout of the connector, whose tables this version cannot read. Let its runs end ` +
        'with that checkout, then move the state aside and start with a new one.',
    )
  return true
}

/**
 * On PostgreSQL, texts compare byte by byte, as SQLite's do. Bodies are text and never jsonb, because every digit of a
 * number counts.
 */
const dialects = {
  sqlite: { text: 'text', number: 'integer', id: 'integer primary key', end: 'strict' },
  postgres: {
    text: 'text collate "C"',
    number: 'bigint',
    id: 'bigint generated always as identity primary key',
    end: '',
  },
} as const

/** The statements that create the tables. */
export function createStatements(dialect: keyof typeof dialects): string[] {
  const { text, number, id, end } = dialects[dialect]
  return [
    `create table store (
      id ${text} primary key, version ${number} not null, created_at ${number} not null,
      forgotten_claims ${number} not null default 0, repaired_at ${number} not null default 0, files ${text}, files_place ${text}
    ) ${end}`,
    `create table workers (
      worker ${text} primary key, files_place ${text} not null, seen_at ${number} not null
    ) ${end}`,
    `create table publications (
      run ${text} not null, resource ${text} not null, destination ${text} not null, place ${text} not null,
      location ${text} not null, test_mode ${number} not null, series ${text} not null, mode ${text} not null,
      started_at ${number} not null, changes_through ${number}, body ${text} not null,
      primary key (run, resource, destination, place, location)
    ) ${end}`,
    `create table notes (
      subject ${text} not null, name ${text} not null, at ${number} not null, body ${text} not null,
      primary key (subject, name)
    ) ${end}`,
    `create table rates (
      name ${text} not null, worker ${text} not null, per_second real not null,
      asked_at ${number} not null, paused_until ${number} not null, primary key (name, worker)
    ) ${end}`,
    `create table leases (
      name ${text} primary key, workflow_id ${text} not null, run_id ${text} not null, taken_at ${number} not null,
      token ${text}, attempt ${number} not null, released ${number} not null
    ) ${end}`,
    `create table changes (
      id ${id}, run ${text} not null, "row" ${number} not null,
      workspace ${text} not null, mode ${text} not null check (mode in ('live', 'test')), kind ${text} not null,
      key ${text} not null, generation ${number} not null, holds_key ${number} not null, breaker_key ${text} not null,
      phase ${number} not null, event ${text}, event_at ${number},
      body ${text} not null,
      state ${text} not null check (state in (${changeStates.map((state) => `'${state}'`).join(', ')})),
      claims ${number} not null, sends ${number} not null, attempts_before ${number} not null,
      not_before ${number} not null, sent_at ${number}, answered_at ${number}, closed_at ${number},
      answer_id ${text}, other_ids ${text}, answer ${text}, outcome ${text}, error ${text}, unknown_since ${number},
      lookups ${number} not null, checked_at ${number}, before ${text}, resolved_by ${text}, resolved_why ${text}
    ) ${end}`,
    `create unique index changes_row on changes (run, "row")`,
    `create index changes_state on changes (run, state, "row")`,
    `create index changes_event on changes (run, breaker_key, event_at)`,
    `create index changes_key on changes (workspace, mode, kind, key)`,
    // One change at a time may be open under a key ...
    `create unique index changes_open on changes (workspace, mode, kind, key)
      where holds_key = 1 and state in ('staged', 'sending', 'unknown', 'parked')`,
    // ... and a key that is done stays taken, except for a change that is staged once more on purpose.
    `create unique index changes_once on changes (workspace, mode, kind, key, generation)
      where holds_key = 1 and state not in ('rejected', 'dropped')`,
  ]
}
