import type { z } from 'zod'
import type { Kind } from '../billing/resources/fields.ts'

export type { Kind }

/** What tables are built from: the part of a service resource that describes its records. */
export interface TableSource {
  name: string
  schema: z.ZodObject
}

/** The last column of each table: values that the others could not hold, as JSON. */
export const extraColumn = '_extra'

/** One column. `source` is the path of its value in the record (`customers.country.id`). */
export interface Column {
  name: string
  kind: Kind
  source: string
  note?: string
}

/**
 * One table of a resource: plain data, so that a manifest can hold it.
 *
 * `key` identifies its rows. `key[0]` always holds the id of the row's record: `id` in a main table,
 * `<record>_id` in a child. A child's key is its parent's key, renamed, and `position` (from 1). Only the
 * main table's key is guaranteed to be the service's own; a child's own `id`, if it has one, is an ordinary
 * column.
 */
export interface Table {
  name: string
  resource: string
  /** The table that holds the parents of these rows; absent for a main table. */
  parent?: string
  key: readonly string[]
  /** The key first, `_extra` last. */
  columns: readonly Column[]
}
