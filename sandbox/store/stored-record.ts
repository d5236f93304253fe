/** The fields of one record as JSON holds them; decimals are JSON.rawJSON, so that they keep every digit. */
export type Fields = Record<string, unknown>

export type RecordId = string | number

/**
 * One version of a record in a collection. Immutable: an update replaces it, so that a replica can keep the
 * old one.
 */
export interface StoredRecord {
  readonly id: RecordId
  /** Microseconds since 1970. */
  readonly created: number
  readonly updated: number
  /** Unique tie-breaker for equal sort keys. */
  readonly tie: number
  /** The sequence number at which the record entered its collection; updates keep it, a restore does not. */
  readonly entered: number
  /** The index from which the record is generated. */
  readonly index: number
  /** All fields, once they differ from those generated from the index. */
  readonly changed: Fields | undefined
  /** The record's JSON, cached. */
  json: Buffer | undefined
}
