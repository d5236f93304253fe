import { type Kysely, sql } from 'kysely'

/**
 * The column held the attempts that counted; now it holds the resume requests of earlier runs, which the body has
 * always had. May run twice.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await sql`update changes set attempts = coalesce(json_extract(body, '$.snapshot.resumes'), 0)
    where kind = 'resume-subscription'`.execute(db)
}
