import { DatabaseSync } from 'node:sqlite'

/** Keys by group, each with a number, on disk: unlimited in number, in constant memory. */
export interface DiskSet {
  /** Adds a key and returns true if the group did not have it; an existing key keeps its first number. */
  add(group: string, key: string, number?: number): boolean
  has(group: string, key: string): boolean
  /** The number of a key; undefined if the group does not have it. */
  get(group: string, key: string): number | undefined
  close(): void
}

/**
 * Creates a set that is not needed after a crash.
 *
 * @param path where to store it; by default a private temporary file that is removed automatically
 */
export function createDiskSet({ path = '' }: { path?: string } = {}): DiskSet {
  const database = new DatabaseSync(path)
  database.exec(`pragma journal_mode = off; pragma synchronous = off; pragma cache_size = -16384;
    create table keys (grp text, key text, number integer, primary key (grp, key)) without rowid; begin`)
  const insert = database.prepare('insert or ignore into keys values (?, ?, ?)')
  const select = database.prepare('select number from keys where grp = ? and key = ?')
  return {
    add: (group, key, number = 0) => insert.run(group, key, number).changes === 1,
    has: (group, key) => select.get(group, key) !== undefined,
    get(group, key) {
      const row = select.get(group, key)
      return row === undefined ? undefined : Number(row['number'])
    },
    close: () => database.close(),
  }
}
