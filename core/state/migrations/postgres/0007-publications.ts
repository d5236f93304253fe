import { type Kysely, sql } from 'kysely'

/** What workers without a data folder of their own have published. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`create table publications (
    id bigint generated always as identity primary key, note text not null, noted_at bigint not null
  )`.execute(db)
}
