import { type Kysely, sql } from 'kysely'

/** Each statement may run twice: SQLite's migrations here are not wrapped in one transaction. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table if not exists store (id text not null, created_at integer not null) strict`.execute(
    db,
  )
  await sql`create table if not exists claims (
    what text primary key, workflow_id text not null, run_id text not null, taken_at integer not null
  ) strict`.execute(db)
  await sql`create table if not exists watermarks (
    workspace text not null, mode text not null, resource text not null, filter text not null,
    destination text not null, at integer not null, run text not null, moved_at integer not null,
    primary key (workspace, mode, resource, filter, destination)
  ) strict`.execute(db)
  await changes(db)
}

async function changes(db: Kysely<unknown>) {
  await sql`create table if not exists changes (
    id integer primary key, run text not null, row integer not null,
    workspace text not null, mode text not null check (mode in ('live', 'test')),
    kind text not null, key text not null, generation integer not null, holds_key integer not null,
    lane text not null, body text not null,
    state text not null
      check (state in ('staged', 'sending', 'done', 'rejected', 'unknown', 'parked', 'dropped')),
    claims integer not null, sends integer not null, attempts integer not null, not_before integer not null,
    sent_at integer, answered_at integer, closed_at integer, answer_id text, answer text, outcome text, error text,
    unknown_since integer, looks integer not null, looked_at integer, before text,
    resolved_by text, resolved_why text
  ) strict`.execute(db)
  await sql`create unique index if not exists changes_row on changes (run, row)`.execute(db)
  await sql`create index if not exists changes_state on changes (run, state, row)`.execute(db)
  await sql`create index if not exists changes_key on changes (workspace, mode, kind, key)`.execute(db)
  // One change at a time may be open under a key ...
  await sql`create unique index if not exists changes_open on changes (workspace, mode, kind, key)
    where holds_key = 1 and state in ('staged', 'sending', 'unknown', 'parked')`.execute(db)
  // ... and a key that is done stays taken, except for a change that is staged once more on purpose.
  await sql`create unique index if not exists changes_once on changes (workspace, mode, kind, key, generation)
    where holds_key = 1 and state not in ('rejected', 'dropped')`.execute(db)
}
