import type { Expression, Kysely, SqlBool } from 'kysely'
import { KeyHeldError, StateConflictError } from './errors.ts'
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

const mostTries = 3

/** Runs a write again if another transaction was in its way. */
export async function retryConflicts<T>(
  write: () => Promise<T>,
  isConflict = (error: unknown): boolean => error instanceof StateConflictError,
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await write()
    } catch (error) {
      if (!isConflict(error) || tries === mostTries) throw error
    }
  }
}

/** Runs a transaction, again if another one was in its way; a held key is an answer unless `retryHeldKeys`. */
export const transact = <T>(
  db: Kysely<StateTables>,
  work: (db: Kysely<StateTables>) => Promise<T>,
  { retryHeldKeys = false } = {},
): Promise<T> =>
  retryConflicts(
    () => db.transaction().execute(work),
    (error) => error instanceof StateConflictError || (retryHeldKeys && error instanceof KeyHeldError),
  )
