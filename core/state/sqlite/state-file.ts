import { mkdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { toStateError } from '../errors.ts'

export const sqliteMigrations = [
  '0001-first',
  '0002-attempts-before',
  '0003-row-keys',
  '0004-names',
  '0005-senders',
  '0006-rates',
  '0007-publications',
  '0008-row-writes',
  '0009-earlier-states',
  '0010-permit-times',
  '0011-seen-claims',
] as const

export type SqliteMigration = (typeof sqliteMigrations)[number]

/** How long a writer waits for a reader's checkpoint or a backup before it fails. */
const busyTimeoutMs = 10_000

/** Opens `state.db`, and creates it unless it is opened for reading. */
export function openStateFile({
  folder,
  file,
  readOnly,
}: {
  folder: string
  file: string
  readOnly: boolean
}): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    if (!readOnly) mkdirSync(folder, { recursive: true })
    database = new DatabaseSync(file, { readOnly, timeout: busyTimeoutMs })
    database.exec('pragma foreign_keys = on')
    if (!readOnly) database.exec('pragma journal_mode = wal; pragma synchronous = normal')
    // The indexes of 100,000 rows exceed SQLite's default cache of 2 MB, and a checkpoint every 4 MB of log writes the
    // same pages repeatedly: with the defaults, staging that many took 26 s instead of 14.
    if (!readOnly) database.exec('pragma cache_size = -16000; pragma wal_autocheckpoint = 8000')
    return database
  } catch (cause) {
    database?.close()
    throw toStateError({ file, cause: asUnopened(cause) })
  }
}

/** A failed mkdir has no SQLite code; to the user it is the same as a file that cannot be opened. */
function asUnopened(cause: unknown): unknown {
  if (!(cause instanceof Error) || 'errcode' in cause) return cause
  return Object.assign(cause, { errcode: 14 })
}

/** The names of the migrations that were applied to a file. */
export function appliedMigrations({ database, file }: { database: DatabaseSync; file: string }): string[] {
  try {
    const table = database
      .prepare(`select 1 from sqlite_master where type = 'table' and name = 'kysely_migration'`)
      .get()
    if (table === undefined) return []
    const rows = database.prepare('select name from kysely_migration order by name').all()
    return rows.map((row) => String(row.name))
  } catch (cause) {
    throw toStateError({ file, cause })
  }
}
