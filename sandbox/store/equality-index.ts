import type { StoredRecord } from './stored-record.ts'

/** The keys of a record for one filter. */
export type KeysOf = (record: StoredRecord) => readonly string[]

/** The records by value, updated with each change: a lookup must not scan a whole list that drifts. */
export class EqualityIndex {
  readonly #keysOf: KeysOf
  readonly #found = new Map<string, Set<StoredRecord>>()

  constructor(keysOf: KeysOf, records: Iterable<StoredRecord>) {
    this.#keysOf = keysOf
    for (const record of records) this.add(record)
  }

  find(key: string): ReadonlySet<StoredRecord> {
    return this.#found.get(key) ?? new Set()
  }

  add(record: StoredRecord): void {
    for (const key of this.#keysOf(record)) {
      const found = this.#found.get(key)
      if (found === undefined) this.#found.set(key, new Set([record]))
      else found.add(record)
    }
  }

  remove(record: StoredRecord): void {
    for (const key of this.#keysOf(record)) this.#found.get(key)?.delete(record)
  }
}
