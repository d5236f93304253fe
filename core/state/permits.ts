import { type Kysely, sql } from 'kysely'
import { isStateAway } from './errors.ts'
import type { StateTables } from './schema.ts'

/** Asks for permits of a rate that several workers share. */
interface PermitAsk {
  requestsPerSecond: number
  /** The run's own rate, if it has one. */
  run: { name: string; requestsPerSecond: number } | undefined
  wanted: number
  write: boolean
  leftWaiting: boolean
  waitedMs: number
}

interface PermitRow {
  firstPermit: number
  waitsMs: number[]
  retryMs: number
  heldByRun: boolean
  workers: number
  atMs: number
}

/**
 * The permits of all workers on one PostgreSQL, from one row: each question is one statement, so that a worker that is
 * frozen in the middle of it holds nobody up. Its functions are in postgres/rates.ts.
 */
export function createPermits(options: {
  db: Kysely<StateTables>
  schema: string
  /** Identifies this worker among those that share the rate. */
  worker: string
}) {
  const { db, schema, worker } = options
  const name = (of: string) => sql.id(schema, of)
  return {
    /** Begins the second in which an empty table gives no permit, so that it is over when the first request comes. */
    async begin(): Promise<void> {
      await sql`insert into ${name('rates')} (name, next_at) values ('all', clock_timestamp() + interval '1 s')
        on conflict do nothing`.execute(db)
    },
    async take({ requestsPerSecond, run, wanted, write, leftWaiting, waitedMs }: PermitAsk) {
      const { rows } = await sql<PermitRow>`select * from ${name('take_permits')}(
        ${worker}, ${requestsPerSecond}, ${run?.name ?? null}, ${run?.requestsPerSecond ?? null},
        ${wanted}, ${write}, ${leftWaiting}, ${waitedMs})`.execute(db)
      const [row] = rows
      if (row === undefined) throw new TypeError('take_permits returned no row')
      const { firstPermit: first, waitsMs, retryMs, heldByRun, workers, atMs: at } = row
      return { first, waitsMs, retryMs, heldByRun, workers, at }
    },
    isAway: isStateAway,
    async slowDown(permit: number): Promise<void> {
      await sql`select ${name('slow_down')}(${permit})`.execute(db)
    },
    async pause(ms: number): Promise<void> {
      await sql`select ${name('pause_permits')}(${ms})`.execute(db)
    },
  }
}

export type Permits = ReturnType<typeof createPermits>
