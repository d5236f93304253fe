import { mix } from '../data/random.ts'
import type { Fields, RecordId, StoredRecord } from './stored-record.ts'

/** The inputs of a generated record. */
export interface Origin {
  index: number
  id: RecordId
  created: number
  updated: number
}

/**
 * Generates the records of one resource from a seed and an index. Fields that may repeat come from a few
 * hundred variants whose JSON is created once, so a million records cost neither memory nor time to write.
 */
export interface Generator {
  idOf(index: number): RecordId
  /** The fields unique to this record. */
  own(origin: Origin): Fields
  /** The fields shared by all records of a variant. */
  shared(variant: number): Fields
}

/** A prime, so that variants never align with groups of equal `created`. */
const VARIANTS = 499
/** 400,000 customers of 1.1 KB; records beyond it are created again for each request. */
const KEPT_BYTES = 450_000_000

/** Turns stored records into fields and JSON. */
export class RecordSource {
  readonly generator: Generator
  readonly #seed: number
  readonly #write: (value: unknown) => string
  readonly #variants = new Map<number, { fields: Fields; json: string }>()
  #kept = 0

  constructor(options: { generator: Generator; seed: number; write: (value: unknown) => string }) {
    this.generator = options.generator
    this.#seed = options.seed
    this.#write = options.write
  }

  /** A new object; changes to its top level do not affect the stored record. */
  fields(record: StoredRecord): Fields {
    if (record.changed !== undefined) return { ...record.changed }
    return { ...this.generator.own(record), ...this.#variant(record.index).fields }
  }

  json(record: StoredRecord): Buffer {
    if (record.json !== undefined) return record.json
    const json = Buffer.from(this.#text(record))
    if (this.#kept < KEPT_BYTES) {
      this.#kept += json.length
      record.json = json
    }
    return json
  }

  /** The record's JSON with some fields replaced. */
  jsonWith(record: StoredRecord, fields: Fields): Buffer {
    return Buffer.from(this.#write({ ...this.fields(record), ...fields }))
  }

  /** Frees the cache of a record that has left its list. */
  forget(record: StoredRecord): void {
    if (record.json === undefined) return
    this.#kept -= record.json.length
    record.json = undefined
  }

  #text(record: StoredRecord): string {
    if (record.changed !== undefined) return this.#write(record.changed)
    const own = this.#write(this.generator.own(record))
    return `${own.slice(0, -1)},${this.#variant(record.index).json.slice(1)}`
  }

  #variant(index: number) {
    const variant = mix(this.#seed, index) % VARIANTS
    let made = this.#variants.get(variant)
    if (made === undefined) {
      const fields = this.generator.shared(variant)
      made = { fields, json: this.#write(fields) }
      this.#variants.set(variant, made)
    }
    return made
  }
}
