import { DatabaseSync } from 'node:sqlite'

/** The first row of each key. A file may have a million of them, so they lie in a temporary file of SQLite's. */
export interface KeyStore {
  /** The row that had the key before, if one had. */
  add(key: string, row: number): number | undefined
  close(): void
}

export function createKeyStore(): KeyStore {
  const db = new DatabaseSync('')
  db.exec('pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -16000')
  db.exec('create table keys (key text primary key, row integer) without rowid; begin')
  const insert = db.prepare('insert into keys values (?, ?) on conflict do nothing')
  const first = db.prepare('select row from keys where key = ?')
  return {
    add(key, row) {
      if (insert.run(key, row).changes === 1) return undefined
      return Number(first.get(key)?.['row'])
    },
    close: () => db.close(),
  }
}
