import type { Kysely } from 'kysely'
import { KeyHeldError, StateConflictError } from './errors.ts'
import type { StateTables } from './schema.ts'

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
