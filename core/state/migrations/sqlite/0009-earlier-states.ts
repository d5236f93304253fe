import { type Kysely, sql } from 'kysely'

/** An outcome has another name. Under the old one, a run that was resumed did not count it against its proof. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`update changes set outcome = 'storedDifferently' where outcome = 'storedOtherwise'`.execute(db)
}
