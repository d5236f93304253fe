import { z } from 'zod'
import { checkFilters } from '../billing/resources/filters.ts'
import { documentNames, documentResources, listNames, listResources } from '../billing/resources/lists.ts'
import { type DestinationName, destinationNames } from '../destinations/names.ts'
import { InvalidInput } from '../runs/errors.ts'
import { identityInput, rateInput } from '../runs/inputs.ts'
import { checkPrivacy } from '../tables/privacy.ts'

/** The most ranges of one list that may be read at once. */
export const mostParallel = 64

export const schemaInput = z.string().regex(/^[a-z_][a-z0-9_]{0,62}$/, 'is not a plain name in lower case')

/** Default: a tenth, at least 10. */
export const maxDeletesInput = z.union([z.int().min(0), z.literal('all')])

const toInput = z.array(z.enum(destinationNames)).min(1).optional()

const toMeta = { flag: '--to <destinations>', help: 'where to publish' }
const schemaMeta = { help: 'the schema in PostgreSQL' }
const maxDeletesMeta = { help: 'the most records to mark as deleted in a warehouse, or all' }

/** The fields that may be overridden when kept parts are published again. Default: the export's own values. */
export const publishAgainFields = {
  to: toInput.meta({ ...toMeta, otherwise: 'as in the export' }),
  maxDeletes: maxDeletesInput
    .optional()
    .meta({ flag: '--max-deletes <n>', ...maxDeletesMeta, otherwise: 'as in the export' }),
  schema: schemaInput
    .optional()
    .meta({ flag: '--schema <name>', ...schemaMeta, otherwise: 'as in the export' }),
}
export type PublishAgain = z.output<z.ZodObject<typeof publishAgainFields>>

/** The fields shared by every run that publishes what it reads. */
export const publishingFields = {
  to: toInput.meta({ ...toMeta, otherwise: 'csv' }),
  schema: schemaInput.optional().meta({ ...schemaMeta, otherwise: 'billing; in test mode billing_test' }),
  requestsPerSecond: rateInput,
  forExcel: z.boolean().optional().meta({ flag: '--for-excel', help: 'write CSV that Excel opens safely' }),
  exclude: z.array(z.string()).optional().meta({
    flag: '--exclude <columns>',
    help: 'columns to leave out, as in customers.email,customers.phone',
  }),
  hash: z
    .array(z.string())
    .optional()
    .meta({ flag: '--hash <columns>', help: 'columns to replace with a keyed hash' }),
  out: z.string().optional().meta({
    help: 'the root of the published folders, one of CONNECTOR_OUT_DIRS',
    otherwise: 'the data folder',
  }),
  identity: identityInput,
}
export type PublishingInput = z.output<z.ZodObject<typeof publishingFields>>

const { to, schema, ...otherFields } = publishingFields

/** The input of `exportData`: one object in which every field is optional, as the Temporal UI sends it. */
export const exportInput = z.strictObject({
  resources: z
    .array(z.enum(listNames))
    .min(1)
    .optional()
    .meta({ help: 'the lists to export', otherwise: 'all' }),
  to,
  mode: z.enum(['full', 'incremental']).optional().meta({
    flag: '--mode <mode>',
    help: 'the whole list, or what has changed since the last proven export to the same destinations',
  }),
  lookbackSeconds: z.number().min(0).optional().meta({
    help: 'how far before its watermark an incremental read starts, to catch records that were committed late',
  }),
  schema,
  maxDeletes: maxDeletesInput.optional().meta({ ...maxDeletesMeta, otherwise: 'a tenth, at least 10' }),
  filters: z.record(z.string(), z.string()).optional().meta({
    flag: '--filter <name=value>',
    help: 'filter of each requested list, as in status=active; repeatable',
  }),
  /** Requests that a killed worker sent after its last checkpoint do not count. */
  maxPages: z.int().min(1).optional().meta({
    help: 'the most requests of each read, failed ones included; unproven if cut short, or if the list has statuses',
  }),
  parallel: z.int().min(1).max(mostParallel).optional().meta({
    help: 'ranges of a long list to read at once, by all workers together; 1 reads each list in one piece',
    otherwise: 'BILLING_CONCURRENCY',
  }),
  ...otherFields,
})
export type ExportInput = z.input<typeof exportInput>

/** The input of `fetchDocuments`: one object, as the Temporal UI sends it. */
export const fetchInput = z.strictObject({
  documents: z.enum(documentNames).meta({ help: 'the documents to fetch' }),
  ids: z
    .array(z.union([z.string(), z.int()]))
    .optional()
    .meta({ help: 'the ids; alternatively `file`' }),
  file: z.string().min(1).optional().meta({ help: 'a CSV file in the data folder' }),
  idColumn: z
    .string()
    .min(1)
    .optional()
    .meta({ help: 'the column of the file that holds the ids', otherwise: 'id' }),
  ...publishingFields,
})
export type FetchInput = z.input<typeof fetchInput>

/** The input of `publishRun`. */
export const publishAgainInput = z.strictObject({
  run: z.string().min(1).meta({ help: 'the export whose kept parts are published again' }),
  ...publishAgainFields,
})
export type PublishAgainInput = z.input<typeof publishAgainInput>

/** Stands for the key of a worker elsewhere, which checks it itself. */
const otherHashKey = 'of the worker'

/**
 * Checks what the schema of an export cannot.
 *
 * @throws {FilterError | UnknownFieldError | PrivacyRefusedError | InvalidInput}
 */
export function checkExport(input: ExportInput, hashKey = otherHashKey): void {
  const { resources = listNames, filters = {}, exclude = [], hash = [] } = input
  for (const name of resources) checkFilters({ resource: listResources[name], filters })
  checkPrivacy(Object.values(listResources), { exclude, hash, hashKey })
  refuseIneffective(input)
}

/**
 * Checks what the schema of a fetch cannot.
 *
 * @throws {UnknownFieldError | PrivacyRefusedError | InvalidInput}
 */
export function checkFetch(input: FetchInput, hashKey = otherHashKey): void {
  const { documents, exclude = [], hash = [] } = input
  checkPrivacy([documentResources[documents]], { exclude, hash, hashKey })
  refuseIneffective(input)
}

/** The fields that only some destinations heed. */
const heededBy = {
  forExcel: ['csv'],
  schema: ['postgres'],
  maxDeletes: ['duckdb', 'postgres'],
} as const satisfies Record<string, readonly DestinationName[]>

type Particular = keyof typeof heededBy

/** Whether one of these destinations heeds a field. */
export const isHeeded = (name: Particular, to: readonly DestinationName[]): boolean =>
  to.some((one) => heededBy[name].some((heeding) => heeding === one))

/**
 * A field that changes nothing was meant for another destination.
 *
 * @throws {InvalidInput}
 */
export function refuseIneffective(input: Pick<ExportInput, Particular | 'to'>): void {
  const { to = ['csv'] } = input
  for (const name of Object.keys(heededBy) as Particular[]) {
    const value = input[name]
    if (value === undefined || value === false || isHeeded(name, to)) continue
    throw new InvalidInput(
      `${name}: has no effect on ${to.join(', ')}. Leave it out, or publish to ${heededBy[name].join(' or ')}.`,
    )
  }
}
