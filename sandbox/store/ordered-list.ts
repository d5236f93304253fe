import type { StoredRecord } from './stored-record.ts'

export type Compare = (one: StoredRecord, other: StoredRecord) => number

export type OrderField = 'created' | 'updated' | 'id'

/** Sorts text by locale, as the service's database does: case and punctuation weigh less than letters. */
const collator = new Intl.Collator('es')

export const compares: Record<OrderField, Compare> = {
  created: (one, other) => one.created - other.created || one.tie - other.tie,
  updated: (one, other) => one.updated - other.updated || one.tie - other.tie,
  id: (one, other) =>
    typeof one.id === 'number' && typeof other.id === 'number'
      ? one.id - other.id
      : collator.compare(String(one.id), String(other.id)) || one.tie - other.tie,
}

/**
 * Records kept in order, so that they never need sorting. Moving 8 MB for a million records takes about 1
 * ms.
 */
export class OrderedList {
  readonly #compare: Compare
  readonly #records: StoredRecord[]

  /** Takes ownership of the records; `sorted`: they are already in order. */
  constructor(options: { compare: Compare; records: StoredRecord[]; sorted: boolean }) {
    this.#compare = options.compare
    this.#records = options.records
    if (!options.sorted) this.#records.sort(options.compare)
  }

  get length(): number {
    return this.#records.length
  }

  at(place: number): StoredRecord | undefined {
    return this.#records[place]
  }

  all(): readonly StoredRecord[] {
    return this.#records
  }

  add(record: StoredRecord): void {
    const place = this.#placeOf(record)
    if (place === this.#records.length) this.#records.push(record)
    else this.#records.splice(place, 0, record)
  }

  /** The record must be in the list. */
  remove(record: StoredRecord): void {
    this.#records.splice(this.#placeOf(record), 1)
  }

  copy(): OrderedList {
    return new OrderedList({ compare: this.#compare, records: this.#records.slice(), sorted: true })
  }

  #placeOf(record: StoredRecord): number {
    let from = 0
    let to = this.#records.length
    const last = this.#records[to - 1]
    if (last === undefined || this.#compare(last, record) < 0) return to
    while (from < to) {
      const middle = (from + to) >>> 1
      if (this.#compare(this.#records[middle] as StoredRecord, record) < 0) from = middle + 1
      else to = middle
    }
    return from
  }
}
