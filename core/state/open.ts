import { randomUUID } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { Kysely, SqliteDialect } from 'kysely'
import { Migrator } from 'kysely/migration'
import { type Leases, createLeases } from './leases.ts'
import { LockLostError, StateTooNewError, StateTooOldError, toStateError } from './errors.ts'
import { type Ledger, createLedger } from './ledger/ledger.ts'
import { up as first } from './migrations/0001-first.ts'
import { up as attemptsBefore } from './migrations/0002-attempts-before.ts'
import { up as rowKeys } from './migrations/0003-row-keys.ts'
import { up as names } from './migrations/0004-names.ts'
import { up as senders } from './migrations/0005-senders.ts'
import { nodeSqlite } from './node-sqlite.ts'
import type { StateTables } from './tables.ts'
import { type Watermarks, createWatermarks } from './watermarks.ts'

/** Everything the connector remembers between runs, in `state.db` of the data folder. */
export interface State {
  /** The id of this store, created when it is first opened: a run refuses to continue with another one. */
  readonly storeId: string
  readonly leases: Leases
  readonly watermarks: Watermarks
  readonly ledger: Ledger
  close(): Promise<void>
}

const migrations = {
  '0001-first': { up: first },
  '0002-attempts-before': { up: attemptsBefore },
  '0003-row-keys': { up: rowKeys },
  '0004-names': { up: names },
  '0005-senders': { up: senders },
}

/** How long a writer waits for a reader's checkpoint or a backup before it fails. */
const busyTimeoutMs = 10_000

/**
 * Opens the state of a data folder. Without `readOnly` the file is created and migrated as needed; only the process
 * that holds the folder's lock may do that. Every commit is on disk when its promise resolves.
 * `isHeld` says whether this process still holds that lock: once it does not, nothing more is claimed.
 *
 * @throws {StateUnreadableError}
 * @throws {StateCorruptError}
 * @throws {StateReadOnlyError}
 * @throws {DiskFullError}
 * @throws {StateBusyError}
 * @throws {StateTooNewError}
 * @throws {StateTooOldError} with `readOnly`
 */
export async function openState({
  folder,
  readOnly = false,
  isHeld = () => true,
}: {
  folder: string
  readOnly?: boolean
  isHeld?: () => boolean
}): Promise<State> {
  const fence = () => {
    if (!isHeld()) throw new LockLostError({ folder })
  }
  const file = join(folder, 'state.db')
  const database = openFile({ folder, file, readOnly })
  const db = new Kysely<StateTables>({
    dialect: new SqliteDialect({ database: nodeSqlite({ database, file }) }),
  })
  try {
    await bringUpToDate({ db, database, file, readOnly })
    const storeId = await readStoreId({ db, readOnly })
    return {
      storeId,
      leases: createLeases({ db }),
      watermarks: createWatermarks({ db }),
      ledger: createLedger({ db, fence }),
      close: () => db.destroy(),
    }
  } catch (error) {
    if (database.isOpen) database.close()
    throw error
  }
}

function openFile({ folder, file, readOnly }: { folder: string; file: string; readOnly: boolean }) {
  let database: DatabaseSync | undefined
  try {
    if (!readOnly) mkdirSync(folder, { recursive: true })
    database = new DatabaseSync(file, { readOnly, timeout: busyTimeoutMs })
    database.exec('pragma foreign_keys = on')
    if (!readOnly) database.exec('pragma journal_mode = wal; pragma synchronous = full')
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

async function bringUpToDate({
  db,
  database,
  file,
  readOnly,
}: {
  db: Kysely<StateTables>
  database: DatabaseSync
  file: string
  readOnly: boolean
}) {
  const known = Object.keys(migrations)
  const applied = appliedMigrations({ database, file })
  const newer = applied.find((name) => !known.includes(name))
  if (newer !== undefined) throw new StateTooNewError({ file, migration: newer })
  if (applied.length === known.length) return
  if (readOnly) throw new StateTooOldError({ file })
  const migrator = new Migrator({ db, provider: { getMigrations: async () => migrations } })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
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

async function readStoreId({ db, readOnly }: { db: Kysely<StateTables>; readOnly: boolean }) {
  const row = await db.selectFrom('store').select('id').executeTakeFirst()
  if (row !== undefined || readOnly) return row?.id ?? ''
  const id = randomUUID()
  await db.insertInto('store').values({ id, created_at: Date.now() }).execute()
  return id
}
