import { type Kysely, sql } from 'kysely'
import { isStateAway } from './errors.ts'
import type { StateTables } from './schema.ts'

const now = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** A run's rate that nobody has used for this long, in ms, is removed. */
const unusedMs = 86_400_000

/**
 * What the workers of one PostgreSQL share of each rate: one row, replaced only by who knows it, so that no worker that is
 * frozen holds up the others.
 */
export function createRateShares({ db, worker }: { db: Kysely<StateTables>; worker: string }) {
  const read = (rate: string) =>
    db
      .selectFrom('rates')
      .select(['shares', 'pausedUntil', now.as('now')])
      .where('name', '=', rate)
      .executeTakeFirst()
  const create = async (rate: string) => {
    await db
      .deleteFrom('rates')
      .where('name', '<>', 'all')
      .where('usedAt', '<', sql<number>`${now} - ${unusedMs}`)
      .execute()
    await db
      .insertInto('rates')
      .values({ name: rate, shares: '{}', pausedUntil: 0, usedAt: now })
      .onConflict((conflict) => conflict.doNothing())
      .execute()
  }
  return {
    worker,
    async read(rate: string) {
      let row = await read(rate)
      if (row === undefined) {
        await create(rate)
        row = await read(rate)
      }
      if (row === undefined) throw new TypeError(`The rate ${rate} was removed as it was created.`)
      return { shares: row.shares, now: row.now, pausedMs: Math.max(0, row.pausedUntil - row.now) }
    },
    async replace(rate: string, { from, to }: { from: string; to: string }): Promise<boolean> {
      const { numUpdatedRows } = await db
        .updateTable('rates')
        .set({ shares: to, usedAt: now })
        .where('name', '=', rate)
        .where('shares', '=', from)
        .executeTakeFirst()
      return numUpdatedRows === 1n
    },
    async pause(rate: string, ms: number): Promise<void> {
      await db
        .updateTable('rates')
        .set({ pausedUntil: sql<number>`greatest(paused_until, ${now} + ${Math.ceil(ms)})` })
        .where('name', '=', rate)
        .execute()
    },
    isAway: isStateAway,
  }
}

export type RateShares = ReturnType<typeof createRateShares>
