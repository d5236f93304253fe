/**
 * The state of a data folder: `state.db`, or `moved.json` once it was moved to PostgreSQL. Short commands need only the id
 * of a state, so the query builder, which takes a quarter of a second to load, is loaded only with a store.
 */
import { randomUUID } from 'node:crypto'
import { existsSync, mkdirSync, readFileSync } from 'node:fs'
import { uptime } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync, type SQLInputValue } from 'node:sqlite'
import type { SqliteDatabase, SqliteStatement } from 'kysely'
import { isSystemError } from '../storage/system-errors.ts'
import { NoStateError, StateError, StateUnreadableError, toStateError } from './errors.ts'
import { type StateTables, createStatements, isCurrent, schemaVersion } from './schema.ts'
import { followClock } from './store-clock.ts'
import type { IsIn, Store } from './store.ts'
import { connector } from '../runs/view/shell.ts'

/** How long a writer waits for a reader's checkpoint or a backup before it fails. */
const busyTimeoutMs = 10_000

export const stateFileOf = (folder: string): string => join(folder, 'state.db')

/**
 * Opens `state.db`, and creates it unless it is opened for reading.
 *
 * @throws {NoStateError} with `readOnly`, if there is no file or it is empty
 */
export function openStateFile({ folder, readOnly }: { folder: string; readOnly: boolean }): DatabaseSync {
  const file = stateFileOf(folder)
  if (readOnly && !existsSync(file)) throw new NoStateError({ place: file })
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

/** Opens `state.db`, and creates it unless it is opened for reading. */
export async function openSqliteStore({
  folder,
  readOnly,
  onClockJump,
}: {
  folder: string
  readOnly: boolean
  /** Called with the jump of this machine's clock in ms. */
  onClockJump?: ((ms: number) => void) | undefined
}): Promise<Store> {
  const { CamelCasePlugin, Kysely, SqliteDialect, sql } = await import('kysely')
  const file = stateFileOf(folder)
  const database = nodeSqlite({ database: openStateFile({ folder, readOnly }), file })
  const db = new Kysely<StateTables>({
    dialect: new SqliteDialect({ database }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
  // SQLite allows at most 32,766 parameters.
  const isIn: IsIn = (column, values) =>
    sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`
  // Unlike the time of day, the time since the machine started is never set.
  const elapsed = () => uptime() * 1_000
  const clock = await followClock({ ask: async () => Date.now(), elapsed, onJump: onClockJump })
  const close = async () => {
    clock.stop()
    await db.destroy()
  }
  return { place: file, db, writes: db, isIn, isShared: false, now: () => clock.now(), close }
}

/**
 * Prepared statements up to this length are cached: preparing took a sixth of the CPU time of a sent change. Longer ones
 * (an insert of hundreds of rows) rarely repeat and would fill the memory.
 */
const maxCachedLength = 2_000

/** Adapts node:sqlite to kysely's SqliteDialect and translates SQLite's errors. */
function nodeSqlite({ database, file }: { database: DatabaseSync; file: string }): SqliteDatabase {
  const translated = <T>(work: () => T): T => {
    try {
      return work()
    } catch (cause) {
      throw toStateError({ place: file, cause })
    }
  }
  const prepare = (text: string): SqliteStatement => {
    const statement = translated(() => database.prepare(text))
    const bound = (parameters: readonly unknown[]) => parameters as readonly SQLInputValue[]
    return {
      reader: statement.columns().length > 0,
      all: (parameters) => translated(() => statement.all(...bound(parameters))),
      run: (parameters) => {
        // SQLite rolls back by itself when the disk is full; a second rollback would fail, and hide why.
        if (text === 'rollback' && !database.isTransaction) return { changes: 0, lastInsertRowid: 0 }
        return translated(() => statement.run(...bound(parameters)))
      },
      iterate: (parameters) => statement.iterate(...bound(parameters)),
    }
  }
  const statements = new Map<string, SqliteStatement>()
  return {
    close: () => database.close(),
    prepare: (text) => {
      const statement = statements.get(text) ?? prepare(text)
      if (text.length <= maxCachedLength) statements.set(text, statement)
      return statement
    },
  }
}

/** `moved.json` of a data folder: its state is on PostgreSQL. */
export interface MovedNote {
  /** The schema and server, without user and password. */
  to: string
  /** `State.storeId`, which moved along. */
  store: string
  /** ISO 8601. */
  at: string
}

export const movedNoteOf = (folder: string) => join(folder, 'moved.json')

export function readMovedNote(folder: string): MovedNote | undefined {
  try {
    // The connector has written it; whatever else is there must not look like a folder that was never moved.
    return JSON.parse(readFileSync(movedNoteOf(folder), 'utf8')) as MovedNote
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return undefined
    throw new StateUnreadableError({ place: movedNoteOf(folder), cause: error })
  }
}

/**
 * Refuses a folder whose state is elsewhere; gives the note of one that was moved to PostgreSQL.
 *
 * @throws {StateError} its state was moved, and the settings name no database; or they name one, and the folder has a state
 * of its own
 */
export function refuseMoved({
  folder,
  database,
}: {
  folder: string
  database?: object | undefined
}): MovedNote | undefined {
  const note = readMovedNote(folder)
  if (database === undefined) {
    if (note === undefined) return undefined
    throw new StateError(
      'StateMovedError',
      `The state of the data folder ${folder} was moved to ${note.to} at ${note.at}: set CONNECTOR_STATE_URL to that ` +
        'database. The state.db left behind does not know what was sent since.',
    )
  }
  if (note === undefined && existsSync(join(folder, 'state.db')))
    throw new StateError(
      'StateNotMovedError',
      `The data folder ${folder} has a state of its own (state.db), which knows what was sent. Move it to PostgreSQL with ` +
        `\`${connector`state move`}\`, or unset CONNECTOR_STATE_URL.`,
    )
  return note
}
