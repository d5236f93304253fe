import { type Kysely, sql } from 'kysely'

/** Renames the leases of runs and three columns of the ledger. May run twice. */
export async function up(db: Kysely<unknown>): Promise<void> {
  await db.transaction().execute(async (transaction) => {
    const renamed = await columnsOf(transaction, 'leases')
    if (renamed.length > 0) return
    await sql`alter table claims rename to leases`.execute(transaction)
    await sql`alter table leases rename column what to name`.execute(transaction)
    await sql`alter table changes rename column lane to breaker_key`.execute(transaction)
    await sql`alter table changes rename column looks to lookups`.execute(transaction)
    await sql`alter table changes rename column looked_at to checked_at`.execute(transaction)
  })
}

async function columnsOf(db: Kysely<unknown>, table: string): Promise<string[]> {
  const { rows } = await sql<{ name: string }>`select name from pragma_table_info(${table})`.execute(db)
  return rows.map(({ name }) => name)
}
