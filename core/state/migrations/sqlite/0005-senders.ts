import { type Kysely, sql } from 'kysely'

/** Who may claim changes of a run. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table if not exists senders (
    run text primary key,
    token text not null,
    since integer not null
  ) strict`.execute(db)
}
