/** The fields of one record, as JSON holds them; a decimal is a JSON.rawJSON, so that it keeps every digit. */
export type Fields = Record<string, unknown>

export type RecordId = string | number

/**
 * One record of a collection at one moment. It never changes: an update puts another one in its place, so that a
 * replica may keep the old one.
 */
export interface StoredRecord {
  readonly id: RecordId
  /** Microseconds since 1970. */
  readonly created: number
  readonly updated: number
  /** Unique; decides the order where the key of an ordering is equal. */
  readonly tie: number
  /** The sequence number at which the record came into its collection; an update keeps it, a restore does not. */
  readonly entered: number
  /** What the record is generated from. */
  readonly index: number
  /** All fields, once they are no longer what is generated from the index. */
  readonly changed: Fields | undefined
  /** The record's JSON, kept once made. */
  json: Buffer | undefined
}
