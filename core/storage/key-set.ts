import { DatabaseSync } from 'node:sqlite'

/** Keys by table, for any number of them in constant memory. */
export interface KeySet {
  /** True if the table did not have the key yet. */
  add(table: string, key: string): boolean
  has(table: string, key: string): boolean
  close(): void
}

/** A database without a name is a temporary file that no one else sees and that goes away by itself. */
export function createKeySet(): KeySet {
  const database = new DatabaseSync('')
  database.exec(`pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -65536;
    create table keys (tbl text, key text, primary key (tbl, key)) without rowid; begin`)
  const insert = database.prepare('insert or ignore into keys values (?, ?)')
  const select = database.prepare('select 1 from keys where tbl = ? and key = ?')
  return {
    add: (table, key) => insert.run(table, key).changes === 1,
    has: (table, key) => select.get(table, key) !== undefined,
    close: () => database.close(),
  }
}
