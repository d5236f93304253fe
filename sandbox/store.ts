import { Chance } from './data/random.ts'
import { toTimestamp } from './data/times.ts'
import type { ResourceName } from './options.ts'

/** The fields of one record as JSON holds them; decimals are JSON.rawJSON, so that they keep every digit. */
export type Fields = Record<string, unknown>

export type RecordId = string | number

/** One version of a record. An update replaces it. */
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
  /** `stamps` are the record's `created` and `updated`. */
  fields(origin: Origin, chance: Chance): Fields
}

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
  record: StoredRecord
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
    if (compare(records[middle]!, record) < 0) from = middle + 1
    else to = middle
  }
  return from
}

/** All records of one mode. */
export type World = Record<ResourceName, Collection>
export type Collection = ReturnType<typeof createCollection>

/**
 * The records of one resource in one mode, live or test; the only place where they change. There is a sorted array for each
 * order that was requested.
 */
export function createCollection(options: {
  generator: RecordGenerator
  seed: number
  write: (value: unknown) => string
  /** In the order of `created`. */
  records: StoredRecord[]
  now: () => number
  /** Numbers and records every change. */
  tell: (change: Change) => number
}) {
  const { generator, seed, write, now } = options
  const orders = new Map<OrderField, StoredRecord[]>([['created', options.records]])
  /** Filtered lists, until a record changes. */
  const found = new Map<string, readonly StoredRecord[]>()
  const byId = new Map(options.records.map((record) => [String(record.id), record]))
  /** Deleted records, oldest first, each with the sequence number of its deletion. */
  const deleted: { record: StoredRecord; at: number }[] = []
  let nextIndex = options.records.length

  const generate = (record: StoredRecord): Fields =>
    generator.fields({ ...record, stamps: stampsOf(record) }, new Chance(seed, record.index))
  const get = (id: RecordId): StoredRecord | undefined => byId.get(String(id))
  const fields = (record: StoredRecord): Readonly<Fields> => (record.fields ??= generate(record))
  const nextId = (): RecordId => generator.idOf(nextIndex)

  /** All records in ascending order. */
  function ordered(field: OrderField = 'created'): readonly StoredRecord[] {
    const known = orders.get(field)
    if (known !== undefined) return known
    const records = ordered().toSorted(compares[field])
    orders.set(field, records)
    return records
  }

  function replace(before: StoredRecord | undefined, after: StoredRecord | undefined): void {
    found.clear()
    if (before !== undefined) byId.delete(String(before.id))
    if (after !== undefined) byId.set(String(after.id), after)
    for (const [field, records] of orders) {
      if (before !== undefined) records.splice(indexIn(records, before, compares[field]), 1)
      if (after !== undefined) records.splice(indexIn(records, after, compares[field]), 0, after)
    }
  }

  function enter(kind: 'create' | 'restore', record: StoredRecord, cause: ChangeSource): StoredRecord {
    replace(undefined, record)
    record.entered = options.tell({ kind, record, cause })
    return record
  }

  return {
    get,
    fields,
    nextId,
    ordered,
    json: (record: StoredRecord): Buffer =>
      (record.json ??= Buffer.from(write(record.fields ?? generate(record)))),
    /** The record's JSON with some fields replaced. */
    jsonWith: (record: StoredRecord, changed: Fields): Buffer =>
      Buffer.from(write({ ...fields(record), ...changed })),

    /** The records that match every term, in ascending order. */
    matching(terms: readonly Term[], field: OrderField): readonly StoredRecord[] {
      if (terms.length === 0) return ordered(field)
      const key = JSON.stringify([field, ...terms.map((term) => term.key)])
      let records = found.get(key)
      records ??= ordered(field).filter((record) => terms.every((term) => term.holds(record)))
      found.set(key, records)
      return records
    },

    /** Creates a record: generated if there are no fields; `created` may be in the past (a late commit). */
    create({ cause, fields, created = now() }: { cause: ChangeSource; fields?: Fields; created?: number }) {
      const ownId = fields?.['id']
      const id = typeof ownId === 'string' || typeof ownId === 'number' ? ownId : nextId()
      const all = fields && { id, ...stampsOf({ created, updated: created }), ...fields }
      const record = { id, created, updated: created, entered: 0, fields: all, json: undefined }
      return enter('create', { ...record, index: nextIndex++ }, cause)
    },

    /** Replaces a record by one with `fields` changed and, unless disabled, `updated` advanced. */
    update(change: { id: RecordId; fields: Fields; cause: ChangeSource; touch?: boolean }) {
      const { id, cause, touch = true } = change
      const before = get(id)
      if (before === undefined) return undefined
      const updated = touch ? now() : before.updated
      const stamp = touch ? { updated: toTimestamp(updated) } : {}
      const after = {
        ...before,
        updated,
        fields: { ...fields(before), ...stamp, ...change.fields },
        json: undefined,
      }
      replace(before, after)
      options.tell({ kind: 'update', record: after, cause })
      return after
    },

    remove(id: RecordId, cause: ChangeSource): StoredRecord | undefined {
      const record = get(id)
      if (record === undefined) return undefined
      replace(record, undefined)
      deleted.push({ record, at: options.tell({ kind: 'delete', record, cause }) })
      return record
    },

    /** Restores a deleted record to its old position. */
    restore(id: RecordId, cause: ChangeSource): StoredRecord | undefined {
      if (get(id) !== undefined) return undefined
      const gone = deleted.findLast(({ record }) => String(record.id) === String(id))
      return gone && enter('restore', { ...gone.record }, cause)
    },

    /** The ids that `restore` can bring back, earliest deletion first. */
    restorable: (): RecordId[] => [
      ...new Set(deleted.map(({ record }) => record.id).filter((id) => get(id) === undefined)),
    ],

    /** The records that existed throughout, from one sequence number to another (or to now). */
    *throughout({ since, until = Infinity }: { since: number; until?: number }): Iterable<StoredRecord> {
      for (const record of ordered()) if (record.entered <= since) yield record
      for (const { record, at } of deleted) if (record.entered <= since && at > until) yield record
    },
  }
}
