import { setTimeout as wait } from 'node:timers/promises'
import type { Expression, Kysely, SqlBool } from 'kysely'
import { StateConflictError, isStateAway } from './errors.ts'
import type { RateShares } from './rate-shares.ts'
import type { ChangeTable, StateTables } from './schema.ts'

/** The database of a state, as its modules use it: SQLite or PostgreSQL. */
export interface Store {
  /** Its name for people: a file, or a schema of a server. Never with a password. */
  readonly place: string
  readonly db: Kysely<StateTables>
  /** For short writes only, so that a claim never waits until a long read frees its connection. */
  readonly writes: Kysely<StateTables>
  /** Whether a column of `changes` has one of these values. The list is bound as one parameter, however long it is. */
  readonly isIn: IsIn
  /** Whether several processes may write it at once: a sender that was superseded may still be running. */
  readonly isShared: boolean
  /** What its workers share of the rate; undefined where there is one worker. */
  readonly rateShares?: RateShares
  /** Now, in milliseconds since 1970, by the store's clock: for every time that a row keeps. */
  readonly now: () => number
  close(): Promise<void>
}

export type IsIn = (
  column: keyof ChangeTable,
  values: readonly string[] | readonly number[],
) => Expression<SqlBool>

/**
 * Where the user's transactions are serializable, PostgreSQL ends one claim in twenty, and one in five of its repetitions
 * (test/system/state/row-writes.test.ts).
 */
const mostTries = 10

export const isConflict = (error: unknown): boolean => error instanceof StateConflictError

/** Runs a transaction again if another transaction was in its way. */
export async function retryConflicts<T>(work: () => Promise<T>, isInTheWay = isConflict): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await work()
    } catch (error) {
      if (!isInTheWay(error) || tries === mostTries) throw error
    }
  }
}

/** Runs a transaction, again if another one was in its way. */
export const transact = <T>(
  db: Kysely<StateTables>,
  work: (db: Kysely<StateTables>) => Promise<T>,
): Promise<T> => retryConflicts(() => db.transaction().execute(work))

/** Also how long an answer in hand waits: without it, its row would be unknown, or parked for a person. */
const longestWaitMs = 300_000
const firstPauseMs = 100
const longestPauseMs = 1_000
/** Work that failed after this long has found the store in between. */
const outageMs = 30_000

/**
 * Does work with the state store, such as a step or the outcome of a request, again while the store is away. Work whose
 * confirmation was lost is repeated, so it must have no further effect the second time.
 *
 * @throws the store's error after five minutes without it, or `forMs`, or when the signal is aborted; any other error at once
 */
export async function whenStoreIsBack<T>(
  work: () => Promise<T>,
  {
    forMs = longestWaitMs,
    signal,
    onAway,
  }: {
    forMs?: number
    signal?: AbortSignal
    /** Called each time that the store was away. */
    onAway?: (() => void) | undefined
  } = {},
): Promise<T> {
  const waitsMs = Math.min(forMs, longestWaitMs)
  let until = performance.now() + waitsMs
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    const from = performance.now()
    try {
      return await work()
    } catch (error) {
      const now = performance.now()
      if (now - from > outageMs) until = now + waitsMs
      if (!isStateAway(error) || now > until || signal?.aborted) throw error
      onAway?.()
      await wait(pauseMs, undefined, { ...(signal && { signal }) }).catch(() => undefined)
    }
  }
}
