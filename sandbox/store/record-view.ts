import { EqualityIndex, type KeysOf } from './equality-index.ts'
import { compares, OrderedList, type OrderField } from './ordered-list.ts'
import type { StoredRecord } from './stored-record.ts'

/** One condition of a lookup. */
export interface Term {
  /** Identifies the condition, value included. */
  key: string
  holds(record: StoredRecord): boolean
  /** For equality conditions: the index that answers it, and the key to look up. */
  index?: { name: string; keysOf: KeysOf; key: string }
}

/** Queries on a collection or its replica. */
export class RecordView {
  readonly #orders = new Map<OrderField, OrderedList>()
  readonly #indexes = new Map<string, EqualityIndex>()
  readonly #found = new Map<string, readonly StoredRecord[]>()

  constructor(created: OrderedList) {
    this.#orders.set('created', created)
  }

  get size(): number {
    return this.ordered('created').length
  }

  /** The whole list in ascending order; maintained from the first request on. */
  ordered(field: OrderField): OrderedList {
    let order = this.#orders.get(field)
    if (order === undefined) {
      const records = this.ordered('created').all().slice()
      order = new OrderedList({ compare: compares[field], records, sorted: false })
      this.#orders.set(field, order)
    }
    return order
  }

  /** The records that match every term, in ascending order. */
  matching(terms: readonly Term[], field: OrderField): readonly StoredRecord[] {
    if (terms.length === 0) return this.ordered(field).all()
    const key = JSON.stringify([field, ...terms.map((term) => term.key)])
    let found = this.#found.get(key)
    if (found === undefined) {
      const candidates = this.#candidates(terms)
      const from = candidates ?? this.ordered(field).all()
      const kept: StoredRecord[] = []
      for (const record of from) if (terms.every((term) => term.holds(record))) kept.push(record)
      found = candidates === undefined ? kept : kept.toSorted(compares[field])
      this.#found.set(key, found)
    }
    return found
  }

  put(change: { before: StoredRecord | undefined; after: StoredRecord | undefined }): void {
    this.#found.clear()
    for (const list of [...this.#orders.values(), ...this.#indexes.values()]) {
      if (change.before !== undefined) list.remove(change.before)
      if (change.after !== undefined) list.add(change.after)
    }
  }

  #candidates(terms: readonly Term[]): ReadonlySet<StoredRecord> | undefined {
    let smallest: ReadonlySet<StoredRecord> | undefined
    for (const { index } of terms) {
      if (index === undefined) continue
      let kept = this.#indexes.get(index.name)
      if (kept === undefined) {
        kept = new EqualityIndex(index.keysOf, this.ordered('created').all())
        this.#indexes.set(index.name, kept)
      }
      const found = kept.find(index.key)
      if (smallest === undefined || found.size < smallest.size) smallest = found
    }
    return smallest
  }
}
