import { type Kysely, sql } from 'kysely'

/**
 * Everything that SQLite's migrations 0001 to 0004 lead to. Texts compare byte by byte, as SQLite's do; bodies are text
 * and never jsonb, because every digit of a number counts.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  const execute = (statement: string) => sql.raw(statement).execute(db)
  await execute(`create table store (
    id text not null, created_at bigint not null, files text, files_place text,
    one boolean primary key default true check (one)
  )`)
  await execute(`create table workers (
    worker text primary key, files text not null, files_place text not null, seen_at bigint not null
  )`)
  await execute(`create table leases (
    name text collate "C" primary key, workflow_id text not null, run_id text not null, taken_at bigint not null
  )`)
  await execute(`create table watermarks (
    workspace text collate "C" not null, mode text collate "C" not null, resource text collate "C" not null,
    filter text collate "C" not null, destination text collate "C" not null,
    at bigint not null, run text not null, moved_at bigint not null,
    primary key (workspace, mode, resource, filter, destination)
  )`)
  await execute(`create table changes (
    id bigint generated always as identity primary key, run text collate "C" not null, "row" integer not null,
    workspace text collate "C" not null, mode text collate "C" not null check (mode in ('live', 'test')),
    kind text collate "C" not null, key text collate "C" not null, generation integer not null,
    holds_key integer not null, breaker_key text collate "C" not null, body text not null,
    state text collate "C" not null
      check (state in ('staged', 'sending', 'done', 'rejected', 'unknown', 'parked', 'dropped')),
    claims integer not null, sends integer not null, attempts integer not null, not_before bigint not null,
    sent_at bigint, answered_at bigint, closed_at bigint, answer_id text, answer text, outcome text collate "C",
    error text, unknown_since bigint, lookups integer not null, checked_at bigint, before text,
    resolved_by text, resolved_why text
  )`)
  await execute(`create unique index changes_row on changes (run, "row")`)
  await execute(`create index changes_state on changes (run, state, "row")`)
  await execute(`create index changes_key on changes (workspace, mode, kind, key)`)
  await execute(`create unique index changes_open on changes (workspace, mode, kind, key)
    where holds_key = 1 and state in ('staged', 'sending', 'unknown', 'parked')`)
  await execute(`create unique index changes_once on changes (workspace, mode, kind, key, generation)
    where holds_key = 1 and state not in ('rejected', 'dropped')`)
}
