import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import {
  CamelCasePlugin,
  Kysely,
  type SqliteDatabase,
  SqliteDialect,
  type SqliteStatement,
  sql,
} from 'kysely'
import { toStateError } from './errors.ts'
import type { StateTables } from './schema.ts'
import { openStateFile, stateFileOf } from './sqlite-file.ts'
import type { IsIn, Store } from './store.ts'

/** Opens `state.db`, and creates it unless it is opened for reading. */
export function openSqliteStore({ folder, readOnly }: { folder: string; readOnly: boolean }): Store {
  const file = stateFileOf(folder)
  const database = nodeSqlite({ database: openStateFile({ folder, readOnly }), file })
  const db = new Kysely<StateTables>({
    dialect: new SqliteDialect({ database }),
    plugins: [new CamelCasePlugin({ maintainNestedObjectKeys: true })],
  })
  return { place: file, db, writes: db, isIn, isShared: false, now: Date.now, close: () => db.destroy() }
}

/** SQLite allows at most 32,766 parameters. */
const isIn: IsIn = (column, values) =>
  sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`

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
      run: (parameters) => translated(() => statement.run(...bound(parameters))),
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
