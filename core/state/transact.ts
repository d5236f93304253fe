import type { Kysely } from 'kysely'
import { KeyHeldError, StateConflictError } from './errors.ts'
import type { StateTables } from './tables.ts'

const mostTries = 3

/** Runs a transaction, again if another one was in its way; a held key is an answer unless `retryHeldKeys`. */
export async function transact<T>(
  db: Kysely<StateTables>,
  work: (db: Kysely<StateTables>) => Promise<T>,
  { retryHeldKeys = false } = {},
): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await db.transaction().execute(work)
    } catch (error) {
      const isConflict =
        error instanceof StateConflictError || (retryHeldKeys && error instanceof KeyHeldError)
      if (!isConflict || tries === mostTries) throw error
    }
  }
}
