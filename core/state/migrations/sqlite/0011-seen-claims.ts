import { type Kysely, sql } from 'kysely'

/** A watermark says which of our own changes, unseen by incremental reads, the last read of the whole list has seen. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`alter table watermarks add column seen_claims integer not null default 0`.execute(db)
}
