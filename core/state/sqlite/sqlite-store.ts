import { mkdirSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { Kysely, SqliteDialect, sql } from 'kysely'
import { toStateError } from '../errors.ts'
import { migrateStore } from '../migrate.ts'
import { up as first } from '../migrations/sqlite/0001-first.ts'
import { up as attemptsBefore } from '../migrations/sqlite/0002-attempts-before.ts'
import { up as rowKeys } from '../migrations/sqlite/0003-row-keys.ts'
import { up as names } from '../migrations/sqlite/0004-names.ts'
import { up as senders } from '../migrations/sqlite/0005-senders.ts'
import { up as earlierStates } from '../migrations/sqlite/0009-earlier-states.ts'
import type { IsIn, Store } from '../store.ts'
import type { StateTables } from '../tables.ts'
import { nodeSqlite } from './node-sqlite.ts'
import { createSqliteRowWrites } from './sqlite-row-writes.ts'

const migrations = {
  '0001-first': { up: first },
  '0002-attempts-before': { up: attemptsBefore },
  '0003-row-keys': { up: rowKeys },
  '0004-names': { up: names },
  '0005-senders': { up: senders },
  // PostgreSQL's alone.
  '0006-rates': { up: async () => {} },
  '0007-publications': { up: async () => {} },
  '0008-row-writes': { up: async () => {} },
  '0009-earlier-states': { up: earlierStates },
}

/** How long a writer waits for a reader's checkpoint or a backup before it fails. */
const busyTimeoutMs = 10_000

/** Opens `state.db`, and creates and migrates it unless it is opened for reading. */
export async function openSqliteStore(options: {
  folder: string
  file: string
  readOnly: boolean
}): Promise<Store> {
  const { file, readOnly } = options
  const database = openFile(options)
  const dialect = new SqliteDialect({ database: nodeSqlite({ database, file }) })
  const db = new Kysely<StateTables>({ dialect })
  try {
    const applied = () => Promise.resolve(appliedMigrations({ database, file }))
    // Each of some sixty statements would wait for the disk. A migration that a power failure undoes is applied again.
    await migrateStore({ db, place: file, readOnly, migrations, applied })
    if (!readOnly) database.exec('pragma synchronous = full')
  } catch (error) {
    if (database.isOpen) database.close()
    throw error
  }
  return {
    place: file,
    db,
    writes: db,
    rowWrites: createSqliteRowWrites(db),
    isIn,
    isShared: false,
    now: Date.now,
    close: () => db.destroy(),
  }
}

/** SQLite allows at most 32,766 parameters. */
const isIn: IsIn = (column, values) =>
  sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`

function openFile({ folder, file, readOnly }: { folder: string; file: string; readOnly: boolean }) {
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

function appliedMigrations({ database, file }: { database: DatabaseSync; file: string }): string[] {
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
