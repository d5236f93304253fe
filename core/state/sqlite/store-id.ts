import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

/**
 * Reads `State.storeId` of the state in a folder without opening the state, whose query builder takes longer to load
 * than the rest of a short command. Undefined if that fails: opening the state says why.
 */
export function readSqliteStoreId(folder: string): string | undefined {
  try {
    using database = new DatabaseSync(join(folder, 'state.db'), { readOnly: true })
    return database.prepare('select id from store').get()?.['id']?.toString()
  } catch {
    return undefined
  }
}
