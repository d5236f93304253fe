import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { SqliteDatabase, SqliteStatement } from 'kysely'
import { toStateError } from '../errors.ts'

/**
 * Prepared statements up to this length are cached: preparing took a sixth of the CPU time of a sent change. Longer ones
 * (an insert of hundreds of rows) rarely repeat and would fill the memory.
 */
const maxCachedLength = 2_000

/** Adapts node:sqlite to kysely's SqliteDialect and translates SQLite's errors. */
export function nodeSqlite({ database, file }: { database: DatabaseSync; file: string }): SqliteDatabase {
  const translated = <T>(work: () => T): T => {
    try {
      return work()
    } catch (cause) {
      throw toStateError({ file, cause })
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
