import type { Expression, Kysely, SqlBool } from 'kysely'
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
