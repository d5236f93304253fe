import type { z } from 'zod'
import type { Kind } from '../billing/resources/fields.ts'

export type { Kind }

/** What tables are made from: a resource of the service, by the part of it that says what its records hold. */
export interface TableSource {
  name: string
  schema: z.ZodObject
}

/** One column. `source` is where its value stands in the record (`customers.country.id`). */
export interface Column {
  name: string
  kind: Kind
  source: string
  note?: string
}

/**
 * One table of a resource: plain data, so that it can stand in a manifest.
 *
 * `key` tells its rows apart. `key[0]` always holds the id of the record a row was made from: `id` in a main
 * table, `<record>_id` in a child. A child's key is its parent's key, renamed, and `position` (from 1). Only the
 * main table's key is promised to be the service's own; a child's own `id`, where it has one, is a plain column.
 */
export interface Table {
  name: string
  resource: string
  /** The table this one's rows hang on; absent for a main table. */
  parent?: string
  key: readonly string[]
  /** The key first, `_extra` last. */
  columns: readonly Column[]
}
