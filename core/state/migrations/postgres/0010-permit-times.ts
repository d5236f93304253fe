import { type Kysely, sql } from 'kysely'
import { takePermits } from './0006-rates.ts'

/** An answer names the time by the store's clock, so that a worker knows it better than from how long the answer took. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`drop function take_permits`.execute(db)
  await sql.raw(takePermits).execute(db)
}
