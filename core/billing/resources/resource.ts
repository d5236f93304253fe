import type { z } from 'zod'

/** How a filter of a list is checked against a record that came back under it. */
export type FilterCheck =
  /** The record carries the field; equal, as the kind says. */
  | { kind: 'text' | 'integer' | 'decimal' | 'date' | 'timestamp'; field: string }
  /** One of a closed set; anything else is wrong usage. */
  | { kind: 'choice'; field: string; values: readonly string[] }
  /** The record's text holds the value, without regard to case. */
  | { kind: 'contains'; field: string }
  /** The record carries a list of objects; one of them has the value in this field. */
  | { kind: 'among'; list: string; field: string }
  /** `created__gte`, `created__lte`: compared as instants. */
  | { kind: 'from' | 'to'; field: string }
  /** Nothing in the record tells; the scope of the read names it. */
  | { kind: 'uncheckable' }

/** A list of the interface: its name, its path, the schema of its records and its filters. */
export interface ListResource<Name extends string = string> {
  name: Name
  path: `/${string}/`
  /** One record; nothing in it is required but an id. */
  schema: z.ZodObject
  filters: Readonly<Record<string, FilterCheck>>
  /** The values of its `status` filter, where it has one: used to look for records that are hidden by default. */
  statuses?: readonly string[]
  /** Whether records say themselves if they are live or test data (plans do not). */
  carriesTestMode: boolean
}
