import { z } from 'zod'
import { documentNames, listNames } from '../billing/resources/lists.ts'
import { destinationNames } from '../destinations/names.ts'
import { mostParallel } from './plan.ts'
import { identityInput } from '../runs/identity-input.ts'

export const schemaInput = z.string().regex(/^[a-z_][a-z0-9_]{0,62}$/, 'is not a plain name in lower case')

/** The most records that a warehouse may mark as deleted. Default: a tenth, at least 10. */
export const maxDeletesInput = z.union([z.int().min(0), z.literal('all')])

/** The fields that may be overridden when kept parts are published again. Default: the export's own values. */
export const publishAgainFields = {
  to: z.array(z.enum(destinationNames)).min(1).optional(),
  maxDeletes: maxDeletesInput.optional(),
  /** The PostgreSQL schema. */
  schema: schemaInput.optional(),
}
export type PublishAgain = z.output<z.ZodObject<typeof publishAgainFields>>

/** The fields shared by every run that publishes what it reads. */
export const publishingFields = {
  to: z.array(z.enum(destinationNames)).min(1).optional(),
  /** The PostgreSQL schema. */
  schema: schemaInput.optional(),
  /** This run's share of the process's request rate. */
  requestsPerSecond: z.number().positive().optional(),
  forExcel: z.boolean().optional(),
  /** `exclude` omits columns (`customers.email`); `hash` replaces their values with a keyed hash. */
  exclude: z.array(z.string()).optional(),
  hash: z.array(z.string()).optional(),
  /** The root of the published folders: the data folder (default) or one of CONNECTOR_OUT_DIRS. */
  out: z.string().optional(),
  identity: identityInput,
}
export type PublishingInput = z.output<z.ZodObject<typeof publishingFields>>

const { to, schema, ...otherFields } = publishingFields

/** The input of `exportData`: one object in which every field is optional, as the Temporal UI sends it. */
export const exportInput = z.strictObject({
  resources: z.array(z.enum(listNames)).min(1).optional(),
  to,
  /** `incremental` reads what has changed since the last proven export to the same destinations. */
  mode: z.enum(['full', 'incremental']).optional(),
  /** How far before its watermark an incremental read starts, to catch records that were committed late. */
  lookbackSeconds: z.number().min(0).optional(),
  schema,
  maxDeletes: maxDeletesInput.optional(),
  /** Filters of the lists (interface, section 4.2). Each must be a filter of every requested resource. */
  filters: z.record(z.string(), z.string()).optional(),
  /**
   * The most list requests of each read, failed ones and retries included; those that a killed worker sent since its last
   * checkpoint are forgotten. A read that reaches the limit is unproven.
   */
  maxPages: z.int().min(1).optional(),
  /** The most ranges of a long list that are read at once, by all workers together. Default: BILLING_CONCURRENCY; 1 divides no list. */
  parallel: z.int().min(1).max(mostParallel).optional(),
  ...otherFields,
})
export type ExportInput = z.input<typeof exportInput>

/** The input of `fetchDocuments`: one object, as the Temporal UI sends it. */
export const fetchInput = z.strictObject({
  documents: z.enum(documentNames),
  /** The ids; alternatively `file`. */
  ids: z.array(z.union([z.string(), z.int()])).optional(),
  /** A CSV file in the data folder. */
  file: z.string().min(1).optional(),
  /** The column of the file that holds the ids. Default: `id`. */
  column: z.string().min(1).optional(),
  ...publishingFields,
})
export type FetchInput = z.input<typeof fetchInput>

/** The input of `publishRun`. */
export const publishAgainInput = z.strictObject({
  /** The export whose kept parts are published again. */
  run: z.string().min(1),
  ...publishAgainFields,
})
export type PublishAgainInput = z.input<typeof publishAgainInput>
