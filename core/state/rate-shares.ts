import { type Kysely, sql } from 'kysely'
import { isStateAway } from './errors.ts'
import type { StateTables } from './schema.ts'

const now = sql<number>`(extract(epoch from clock_timestamp()) * 1000)::bigint`

/** A worker's use of a rate that is this old, in ms, is removed. */
const unusedMs = 86_400_000

/** Who uses which rate, of the workers of one PostgreSQL. Each writes only its own row, so none can hold up another. */
export function createRateShares({ db, worker }: { db: Kysely<StateTables>; worker: string }) {
  return {
    worker,
    async ask(name: string, perSecond: number) {
      const mine = { perSecond, askedAt: now }
      await db
        .insertInto('rates')
        .values({ name, worker, pausedUntil: 0, ...mine })
        .onConflict((conflict) => conflict.columns(['name', 'worker']).doUpdateSet(mine))
        .execute()
      await db
        .deleteFrom('rates')
        .where('askedAt', '<', sql<number>`${now} - ${unusedMs}`)
        .execute()
      const askers = await db
        .selectFrom('rates')
        .select(['worker', 'perSecond', 'askedAt', 'pausedUntil', now.as('now')])
        .where('name', '=', name)
        .execute()
      const at = Math.max(...askers.map((asker) => asker.now))
      return { askers, now: at, pausedMs: Math.max(0, ...askers.map(({ pausedUntil }) => pausedUntil - at)) }
    },
    async pause(name: string, ms: number): Promise<void> {
      await db
        .updateTable('rates')
        .set({ pausedUntil: sql<number>`greatest(paused_until, ${now} + ${Math.ceil(ms)})` })
        .where('name', '=', name)
        .where('worker', '=', worker)
        .execute()
    },
    isAway: isStateAway,
  }
}

export type RateShares = ReturnType<typeof createRateShares>
