import type { z } from 'zod'

/** How to check a filter of a list against the records returned. */
export type FilterCheck =
  /** The field of the record equals the value, compared by its kind. */
  | { kind: 'text' | 'integer' | 'decimal' | 'date' | 'timestamp'; field: string }
  /** One of a closed set; any other value is an error. */
  | { kind: 'choice'; field: string; values: readonly string[] }
  /** The record's text contains the value, ignoring case. */
  | { kind: 'contains'; field: string }
  /** An object in a list of the record has the value in this field. */
  | { kind: 'listItem'; list: string; field: string }
  /** `created__gte`, `created__lte`: compared as instants. */
  | { kind: 'from' | 'to'; field: string }
  /** Records do not show it; the scope of the read names the filter. */
  | { kind: 'uncheckable' }

/** A list of the API: name, path, schema of its records and filters. */
export interface ListResource<Name extends string = string> {
  name: Name
  path: `/${string}/`
  /** One record; only the id is required. */
  schema: z.ZodObject
  filters: Readonly<Record<string, FilterCheck>>
  /** The values of its `status` filter, if it has one: used to find records that are hidden by default. */
  statuses?: readonly string[]
  /** What changes without moving `updated` of the record, so that an incremental read does not see it. */
  unmoved?: {
    fields: readonly string[]
    /** The kinds of our own changes to them. */ byKinds: readonly string[]
  }
  /** Whether records say if they are live or test data (plans do not). */
  carriesTestMode: boolean
}
