import type { DatabaseSync, SQLInputValue } from 'node:sqlite'
import type { SqliteDatabase, SqliteStatement } from 'kysely'
import { toStateError } from './errors.ts'

/**
 * Prepared statements are kept: preparing took a sixth of the processor's time of a sent change. Longer ones (an
 * insert of hundreds of rows) are rarely met twice, and would fill the memory.
 */
const longestKept = 2_000

/** node:sqlite as kysely's SqliteDialect wants its driver, with SQLite's errors in our words. */
export function nodeSqlite({ database, file }: { database: DatabaseSync; file: string }): SqliteDatabase {
  const inOurWords = <T>(work: () => T): T => {
    try {
      return work()
    } catch (cause) {
      throw toStateError({ file, cause })
    }
  }
  const prepare = (text: string): SqliteStatement => {
    const statement = inOurWords(() => database.prepare(text))
    const bound = (parameters: readonly unknown[]) => parameters as readonly SQLInputValue[]
    return {
      reader: statement.columns().length > 0,
      all: (parameters) => inOurWords(() => statement.all(...bound(parameters))),
      run: (parameters) => inOurWords(() => statement.run(...bound(parameters))),
      iterate: (parameters) => statement.iterate(...bound(parameters)),
    }
  }
  const kept = new Map<string, SqliteStatement>()
  return {
    close: () => database.close(),
    prepare: (text) => {
      const statement = kept.get(text) ?? prepare(text)
      if (text.length <= longestKept) kept.set(text, statement)
      return statement
    },
  }
}
