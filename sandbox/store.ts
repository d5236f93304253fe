import { Chance, mix } from './data/random.ts'
import { toTimestamp } from './data/times.ts'
import type { ResourceName } from './options.ts'

/** The fields of one record as JSON holds them; decimals are JSON.rawJSON, so that they keep every digit. */
export type Fields = Record<string, unknown>

export type RecordId = string | number

/** One version of a record. An update replaces it, so that a replica can keep the old one. */
export interface StoredRecord {
  readonly id: RecordId
  /** Microseconds since 1970. */
  readonly created: number
  readonly updated: number
  /** The index from which the record is generated; it also orders records with equal sort keys. */
  readonly index: number
  /** The sequence number at which the record entered its collection; updates keep it, a restore does not. */
  entered: number
  /** All fields, once they are needed or differ from those generated. */
  fields: Readonly<Fields> | undefined
  /** The record's JSON, cached. */
  json: Buffer | undefined
}

interface Origin extends Pick<StoredRecord, 'index' | 'id' | 'created' | 'updated'> {
  stamps: { created: string; updated: string }
}

/** Generates the records of one resource from a seed and an index. */
export interface RecordGenerator {
  idOf(index: number): RecordId
  /** The fields unique to this record; `stamps` are its `created` and `updated`. */
  own(origin: Origin, chance: Chance): Fields
  /** The fields shared by all records of a variant. */
  shared(chance: Chance): Fields
}

/** A prime, so that variants never align with groups of equal `created`. */
const variants = 499

/** The source of a change and, if it was a request, which one. */
export interface ChangeSource {
  by: 'request' | 'late effect' | 'other client' | 'drift' | 'control'
  request?: number
  /** The name of the change in the audit, if it has its own: `resume`. */
  effect?: string
  /** The changed part of the record, if not the whole: a customer's contact. */
  part?: { resource: 'contacts'; id: string }
}

export interface Change {
  kind: 'create' | 'update' | 'delete' | 'restore'
  before: StoredRecord | undefined
  after: StoredRecord | undefined
  cause: ChangeSource
}

/** One condition of a lookup; the key identifies it, value included. */
export interface Term {
  key: string
  holds(record: StoredRecord): boolean
}

export type OrderField = 'created' | 'updated' | 'id'

type Compare = (one: StoredRecord, other: StoredRecord) => number

/** Sorts text by locale, as the service's database does: case and punctuation weigh less than letters. */
const collator = new Intl.Collator('es')

const compares: Record<OrderField, Compare> = {
  created: (one, other) => one.created - other.created || one.index - other.index,
  updated: (one, other) => one.updated - other.updated || one.index - other.index,
  id: (one, other) =>
    typeof one.id === 'number' && typeof other.id === 'number'
      ? one.id - other.id
      : collator.compare(String(one.id), String(other.id)) || one.index - other.index,
}

const stampsOf = ({ created, updated }: Pick<StoredRecord, 'created' | 'updated'>) => ({
  created: toTimestamp(created),
  updated: toTimestamp(updated),
})

/** The index of a record in a sorted array, or where it belongs. */
function indexIn(records: readonly StoredRecord[], record: StoredRecord, compare: Compare): number {
  let [from, to] = [0, records.length]
  while (from < to) {
    const middle = (from + to) >>> 1
    if (compare(records[middle] as StoredRecord, record) < 0) from = middle + 1
    else to = middle
  }
  return from
}

/** The records of a collection, or of a replica of it: an array for each order that was requested, kept sorted. */
export class RecordView {
  readonly #orders = new Map<OrderField, StoredRecord[]>()
  readonly #found = new Map<string, readonly StoredRecord[]>()

  /** Takes ownership of the records, which must be in the order of `created`. */
  constructor(records: StoredRecord[]) {
    this.#orders.set('created', records)
  }

  /** All records in ascending order. */
  ordered(field: OrderField): readonly StoredRecord[] {
    const known = this.#orders.get(field)
    if (known !== undefined) return known
    const records = this.ordered('created').toSorted(compares[field])
    this.#orders.set(field, records)
    return records
  }

  /** The records that match every term, in ascending order. */
  matching(terms: readonly Term[], field: OrderField): readonly StoredRecord[] {
    if (terms.length === 0) return this.ordered(field)
    const key = JSON.stringify([field, ...terms.map((term) => term.key)])
    let found = this.#found.get(key)
    if (found === undefined) {
      found = this.ordered(field).filter((record) => terms.every((term) => term.holds(record)))
      this.#found.set(key, found)
    }
    return found
  }

  put({ before, after }: Pick<Change, 'before' | 'after'>): void {
    this.#found.clear()
    for (const [field, records] of this.#orders) {
      if (before !== undefined) records.splice(indexIn(records, before, compares[field]), 1)
      if (after !== undefined) records.splice(indexIn(records, after, compares[field]), 0, after)
    }
  }
}

interface CollectionOptions {
  generator: RecordGenerator
  seed: number
  write: (value: unknown) => string
  /** In the order of `created`. */
  records: StoredRecord[]
  now: () => number
  /** Numbers and records every change. */
  tell: (change: Change) => number
}

/** The records of one resource in one mode, live or test; the only place where they change. */
export class Collection {
  readonly view: RecordView
  readonly #options: CollectionOptions
  readonly #shared = new Map<number, Fields>()
  readonly #byId: Map<string, StoredRecord>
  readonly #listeners = new Set<(change: Change) => void>()
  /** Deleted records, oldest first, each with the sequence number of its deletion. */
  readonly #left: { record: StoredRecord; left: number }[] = []
  #nextIndex: number

  constructor(options: CollectionOptions) {
    const { records } = options
    this.#options = options
    this.#nextIndex = records.length
    this.#byId = new Map(records.map((record) => [String(record.id), record]))
    this.view = new RecordView(records)
  }

  get(id: RecordId): StoredRecord | undefined {
    return this.#byId.get(String(id))
  }

  fields(record: StoredRecord): Readonly<Fields> {
    return (record.fields ??= this.#generate(record))
  }

  json(record: StoredRecord): Buffer {
    return (record.json ??= Buffer.from(this.#options.write(record.fields ?? this.#generate(record))))
  }

  /** The record's JSON with some fields replaced. */
  jsonWith(record: StoredRecord, fields: Fields): Buffer {
    return Buffer.from(this.#options.write({ ...this.fields(record), ...fields }))
  }

  #generate(record: StoredRecord): Fields {
    const { generator, seed } = this.#options
    const variant = mix(seed, record.index) % variants
    let shared = this.#shared.get(variant)
    if (shared === undefined)
      this.#shared.set(variant, (shared = generator.shared(new Chance(seed, 1_000_000_007 + variant))))
    return {
      ...generator.own({ ...record, stamps: stampsOf(record) }, new Chance(seed, record.index)),
      ...shared,
    }
  }

  /** Returns a function that unsubscribes the listener. */
  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The id of the next new record. */
  nextId(): RecordId {
    return this.#options.generator.idOf(this.#nextIndex)
  }

  /** Creates a record: generated if there are no fields; `created` may be in the past (a late commit). */
  create(options: { cause: ChangeSource; fields?: Fields; created?: number }): StoredRecord {
    const { cause, fields } = options
    const ownId = fields?.['id']
    const id = typeof ownId === 'string' || typeof ownId === 'number' ? ownId : this.nextId()
    const index = this.#nextIndex++
    const created = options.created ?? this.#options.now()
    const all = fields && { id, ...stampsOf({ created, updated: created }), ...fields }
    const record = { index, id, created, updated: created, entered: 0, fields: all, json: undefined }
    return this.#enter('create', record, cause)
  }

  /** Replaces a record by one with `fields` changed and, unless disabled, `updated` advanced. */
  update(options: {
    id: RecordId
    fields: Fields
    cause: ChangeSource
    touch?: boolean
  }): StoredRecord | undefined {
    const { id, cause, touch = true } = options
    const before = this.get(id)
    if (before === undefined) return undefined
    const updated = touch ? this.#options.now() : before.updated
    const stamp = touch ? { updated: toTimestamp(updated) } : {}
    const fields = { ...this.fields(before), ...stamp, ...options.fields }
    const after = { ...before, updated, fields, json: undefined }
    this.#byId.set(String(after.id), after)
    this.#publish({ kind: 'update', before, after, cause })
    return after
  }

  remove(id: RecordId, cause: ChangeSource): StoredRecord | undefined {
    const before = this.get(id)
    if (before === undefined) return undefined
    this.#byId.delete(String(id))
    const left = this.#publish({ kind: 'delete', before, after: undefined, cause })
    this.#left.push({ record: before, left })
    return before
  }

  /** Restores a deleted record to its old position. */
  restore(id: RecordId, cause: ChangeSource): StoredRecord | undefined {
    if (this.get(id) !== undefined) return undefined
    const gone = this.#left.findLast(({ record }) => String(record.id) === String(id))
    return gone && this.#enter('restore', { ...gone.record }, cause)
  }

  /** The ids that `restore` can bring back, earliest deletion first. */
  restorable(): RecordId[] {
    const ids = this.#left.map(({ record }) => record.id).filter((id) => this.get(id) === undefined)
    return [...new Set(ids)]
  }

  /** The records that existed throughout, from one sequence number to another (or to now). */
  *throughout({ since, until = Infinity }: { since: number; until?: number }): Iterable<StoredRecord> {
    for (const record of this.view.ordered('created')) if (record.entered <= since) yield record
    for (const { record, left } of this.#left) if (record.entered <= since && left > until) yield record
  }

  #enter(kind: 'create' | 'restore', record: StoredRecord, cause: ChangeSource): StoredRecord {
    this.#byId.set(String(record.id), record)
    record.entered = this.#publish({ kind, before: undefined, after: record, cause })
    return record
  }

  #publish(change: Change): number {
    this.view.put(change)
    for (const listener of this.#listeners) listener(change)
    return this.#options.tell(change)
  }
}

/** All records of one mode. */
export type World = Record<ResourceName, Collection>
