import { type Kysely, sql } from 'kysely'
import { up as renameOutcome } from '../sqlite/0009-earlier-states.ts'
import { up as createRates } from './0006-rates.ts'

/**
 * What SQLite's migration does, and the shared rate as it is now: for a day, 0006-rates made other functions, with which
 * no worker gets a permit. What is dropped is empty after any crash of PostgreSQL, too.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await renameOutcome(db)
  const { rows } = await sql<{
    found: boolean
  }>`select to_regclass('rate_pauses') is not null as found`.execute(db)
  if (rows[0]?.found === true) return
  await sql`drop function if exists take_permits, slow_down, pause_permits`.execute(db)
  await sql`drop table if exists rates, rate_workers`.execute(db)
  await createRates(db)
}
