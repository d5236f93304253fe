import { toTimestamp } from '../data/times.ts'
import { compares, OrderedList } from './ordered-list.ts'
import type { RecordSource } from './record-source.ts'
import { RecordView } from './record-view.ts'
import type { Fields, RecordId, StoredRecord } from './stored-record.ts'

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

function idIn(fields: Fields | undefined): RecordId | undefined {
  const id = fields?.id
  return typeof id === 'string' || typeof id === 'number' ? id : undefined
}

/** The records of one resource in one mode, live or test; the only place where they change. */
export class Collection {
  readonly name: string
  readonly source: RecordSource
  readonly view: RecordView
  readonly #byId = new Map<string, StoredRecord>()
  readonly #now: () => number
  readonly #tell: (change: Change) => number
  readonly #listeners = new Set<(change: Change) => void>()
  /** Deleted records, oldest first, each with the sequence number of its deletion. */
  readonly #left: { record: StoredRecord; left: number }[] = []
  #nextIndex: number

  /** `records` must be in the order of `created`; `tell` numbers and records every change. */
  constructor(options: {
    name: string
    source: RecordSource
    records: StoredRecord[]
    now: () => number
    tell: (change: Change) => number
  }) {
    this.name = options.name
    this.source = options.source
    this.#now = options.now
    this.#tell = options.tell
    this.#nextIndex = options.records.length
    for (const record of options.records) this.#byId.set(String(record.id), record)
    const created = new OrderedList({ compare: compares.created, records: options.records, sorted: true })
    this.view = new RecordView(created)
  }

  get(id: RecordId): StoredRecord | undefined {
    return this.#byId.get(String(id))
  }

  /** Returns a function that unsubscribes the listener. */
  onChange(listener: (change: Change) => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  /** The id of the next new record. */
  nextId(): RecordId {
    return this.source.generator.idOf(this.#nextIndex)
  }

  /** Creates a record: generated if there are no fields; `created` may be in the past (a late commit). */
  create(options: { cause: ChangeSource; fields?: Fields; created?: number }): StoredRecord {
    const { cause, fields } = options
    const index = this.#nextIndex++
    const created = options.created ?? this.#now()
    const id = idIn(fields) ?? this.source.generator.idOf(index)
    const stamps = { id, created: toTimestamp(created), updated: toTimestamp(created) }
    const changed = fields === undefined ? undefined : { ...stamps, ...fields }
    const record = { index, id, created, updated: created, tie: index, changed, json: undefined }
    return this.#put({ kind: 'create', record, before: undefined, cause })
  }

  /** Replaces a record by one with `fields` changed and, unless disabled, `updated` advanced. */
  update(options: {
    id: RecordId
    fields: Fields
    cause: ChangeSource
    touch?: boolean
  }): StoredRecord | undefined {
    const before = this.get(options.id)
    if (before === undefined) return undefined
    const updated = options.touch === false ? before.updated : this.#now()
    const stamp = options.touch === false ? {} : { updated: toTimestamp(updated) }
    const changed = { ...this.source.fields(before), ...stamp, ...options.fields }
    const record = { ...before, updated, changed, json: undefined }
    return this.#put({ kind: 'update', record, before, cause: options.cause })
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
    return gone && this.#put({ kind: 'restore', record: gone.record, before: undefined, cause })
  }

  /** The ids that `restore` can bring back, earliest deletion first. */
  restorable(): RecordId[] {
    const ids = this.#left.map(({ record }) => record.id).filter((id) => this.get(id) === undefined)
    return [...new Set(ids)]
  }

  /** The records that existed throughout, from one sequence number to another (or to now). */
  *throughout(options: { since: number; until?: number }): Generator<StoredRecord> {
    const until = options.until ?? Infinity
    for (const record of this.view.ordered('created').all()) if (record.entered <= options.since) yield record
    for (const { record, left } of this.#left) {
      if (record.entered <= options.since && left > until) yield record
    }
  }

  #put(options: {
    kind: Change['kind']
    record: Omit<StoredRecord, 'entered'>
    before: StoredRecord | undefined
    cause: ChangeSource
  }): StoredRecord {
    const { kind, before, cause } = options
    const after = { ...options.record, entered: before?.entered ?? 0 }
    this.#byId.set(String(after.id), after)
    const sequence = this.#publish({ kind, before, after, cause })
    if (before === undefined) after.entered = sequence
    return after
  }

  #publish(change: Change): number {
    this.view.put(change)
    if (change.before !== undefined) this.source.forget(change.before)
    for (const listener of this.#listeners) listener(change)
    return this.#tell(change)
  }
}
