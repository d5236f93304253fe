import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { NoStateError, toStateError } from './errors.ts'
import { refuseMoved } from './moved-note.ts'
import { createStatements, isCurrent, schemaVersion } from './schema.ts'

/**
 * `state.db` without the query builder, which takes a quarter of a second to load: short commands need only the version
 * and the id of a state.
 */

/** How long a writer waits for a reader's checkpoint or a backup before it fails. */
const busyTimeoutMs = 10_000

export const stateFileOf = (folder: string): string => join(folder, 'state.db')

/**
 * Opens `state.db`, and creates it unless it is opened for reading.
 *
 * @throws {NoStateError} with `readOnly`, if the file is empty
 */
export function openStateFile({ folder, readOnly }: { folder: string; readOnly: boolean }): DatabaseSync {
  const file = stateFileOf(folder)
  let database: DatabaseSync | undefined
  try {
    if (!readOnly) mkdirSync(folder, { recursive: true })
    database = new DatabaseSync(file, { readOnly, timeout: busyTimeoutMs })
    database.exec('pragma foreign_keys = on')
    // The indexes of 100,000 rows exceed SQLite's default cache of 2 MB, and a checkpoint every 4 MB of log writes the
    // same pages repeatedly: with the defaults, staging that many took 26 s instead of 14.
    if (!readOnly)
      database.exec(
        'pragma journal_mode = wal; pragma synchronous = full; pragma cache_size = -16000; pragma wal_autocheckpoint = 8000',
      )
    const isNew = !isCurrent({ place: file, version: versionOf(database) })
    if (isNew && readOnly) throw new NoStateError({ place: file })
    if (isNew) createTables(database)
    return database
  } catch (cause) {
    database?.close()
    throw toStateError({ place: file, cause: asUnopened(cause) })
  }
}

function versionOf(database: DatabaseSync): number | undefined {
  const columns = database.prepare(`select name from pragma_table_info('store')`).all()
  if (columns.length === 0) return undefined
  if (!columns.some(({ name }) => name === 'version')) return 0
  return Number(database.prepare('select version from store').get()?.['version'])
}

function createTables(database: DatabaseSync): void {
  database.exec(['begin immediate', ...createStatements('sqlite')].join(';'))
  const store = database.prepare('insert into store (id, version, created_at) values (?, ?, ?)')
  store.run(randomUUID(), schemaVersion, Date.now())
  database.exec('commit')
}

/** A failed mkdir has no SQLite code; to the user it is the same as a file that cannot be opened. */
function asUnopened(cause: unknown): unknown {
  if (!(cause instanceof Error) || !('syscall' in cause)) return cause
  return Object.assign(cause, { errcode: 14 })
}

/**
 * Reads the id of the state in a folder.
 *
 * @throws what `openState` throws with `readOnly`
 */
export function readStateFile(folder: string): string {
  refuseMoved({ folder })
  const file = stateFileOf(folder)
  using database = openStateFile({ folder, readOnly: true })
  try {
    return String(database.prepare('select id from store').get()?.['id'])
  } catch (cause) {
    throw toStateError({ place: file, cause })
  }
}
