import { z } from 'zod'
import { documentNames } from '../billing/resources/documents.ts'
import { listNames } from '../billing/resources/lists.ts'
import { destinationNames } from '../destinations/names.ts'
import { identityInput } from '../runs/identity-input.ts'

export const schemaInput = z.string().regex(/^[a-z_][a-z0-9_]{0,62}$/, 'is no plain name in lower case')

/** How many records a warehouse may mark as deleted; without it a tenth, at least 10. */
export const maxDeletesInput = z.union([z.int().min(0), z.literal('all')])

/** What may be said anew when kept parts are published again; without it what the export was given. */
export const publishAgainFields = {
  to: z.array(z.enum(destinationNames)).min(1).optional(),
  maxDeletes: maxDeletesInput.optional(),
  /** The schema in PostgreSQL. */
  schema: schemaInput.optional(),
}
export type PublishAgain = z.output<z.ZodObject<typeof publishAgainFields>>

/** The fields that every run takes which publishes what it reads. */
export const publishingFields = {
  to: z.array(z.enum(destinationNames)).min(1).optional(),
  /** The schema in PostgreSQL. */
  schema: schemaInput.optional(),
  /** This run's share of the process's rate. */
  requestsPerSecond: z.number().positive().optional(),
  forExcel: z.boolean().optional(),
  /** Columns left out (`customers.email`), and columns replaced by a keyed hash. */
  exclude: z.array(z.string()).optional(),
  hash: z.array(z.string()).optional(),
  /** Another root for the published folders: the data folder or one of CONNECTOR_OUT_DIRS. */
  out: z.string().optional(),
  identity: identityInput,
}
export type PublishingInput = z.output<z.ZodObject<typeof publishingFields>>

const { to, schema, ...otherFields } = publishingFields

/** The input of `exportData`: one object, every field of which may be left out, as the Temporal UI sends it. */
export const exportInput = z.strictObject({
  resources: z.array(z.enum(listNames)).min(1).optional(),
  to,
  /** `incremental` reads what changed since the last proven export to the same destinations. */
  mode: z.enum(['full', 'incremental']).optional(),
  /** How far behind its watermark an incremental read begins, for records that were committed late. */
  lookbackSeconds: z.number().min(0).optional(),
  schema,
  maxDeletes: maxDeletesInput.optional(),
  /** Filters of the lists (interface, section 4.2); each must be one of every resource asked for. */
  filters: z.record(z.string(), z.string()).optional(),
  /** The most requests that each read may make for its list. A read that is cut short is not proven. */
  maxPages: z.int().min(1).optional(),
  ...otherFields,
})
export type ExportInput = z.input<typeof exportInput>

/** The input of `fetchDocuments`: one object, as the Temporal UI sends it. */
export const fetchInput = z.strictObject({
  documents: z.enum(documentNames),
  /** The ids, or `file`. */
  ids: z.array(z.union([z.string(), z.int()])).optional(),
  /** A CSV file in the data folder. */
  file: z.string().min(1).optional(),
  /** The column of the file that holds the ids; `id` where it is left out. */
  column: z.string().min(1).optional(),
  ...publishingFields,
})
export type FetchInput = z.input<typeof fetchInput>

/** The input of `publishRun`. */
export const publishAgainInput = z.strictObject({
  /** The export whose kept parts are published. */
  run: z.string().min(1),
  ...publishAgainFields,
})
export type PublishAgainInput = z.input<typeof publishAgainInput>
