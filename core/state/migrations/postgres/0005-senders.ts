import { type Kysely, sql } from 'kysely'

/** Who may claim changes of a run. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table senders (
    run text collate "C" primary key, token text not null, since bigint not null
  )`.execute(db)
}
