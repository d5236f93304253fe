import { z } from 'zod'
import type { Kind } from '../../tables/table.ts'
import { destinationNames } from '../names.ts'

const count = z.int().min(0)
const kinds = ['text', 'integer', 'decimal', 'boolean', 'date', 'timestamp', 'json'] as const satisfies Kind[]

/** What a read says of itself. It is passed on as it is; what else a read has to say stays with it. */
const readFactsSchema = z.looseObject({
  verdict: z.enum(['proven', 'unproven']),
  /** Why the read is not proven, a sentence each; none if it is. */
  reasons: z.array(z.string()),
  /** What the verdict is said of, a sentence each. */
  scope: z.array(z.string()),
  /** The promise covers records created up to this moment; null where there is none. */
  completeThrough: z.string().nullable(),
  /** Whose clock said so. */
  clock: z.enum(['service', 'local']),
  ordering: z.string(),
  startedAt: z.iso.datetime({ offset: true }),
  finishedAt: z.iso.datetime({ offset: true }),
  /** What the service said the list holds; hints only. */
  countBefore: count.nullable(),
  countAfter: count.nullable(),
  requests: count,
  windows: count,
  linksRepaired: count,
  records: count,
  duplicatesDropped: count,
  /** Groups of records with one `created` that no window held, and that were swept. */
  ties: z.array(z.looseObject({})),
  /** How many values their columns could not hold, by place in the record. */
  drift: z.record(z.string(), count),
})
export type ReadFacts = z.infer<typeof readFactsSchema>

const fileSchema = z.object({
  /** Relative to the manifest, and in its own folder. */
  path: z.string().regex(/^[^/\\]+$/, 'is no plain file name'),
  rows: count,
  bytes: count,
  sha256: z.string().regex(/^[0-9a-f]{64}$/, 'is no SHA-256 sum'),
})
export type PublishedFile = z.infer<typeof fileSchema>

const columnSchema = z.object({
  name: z.string(),
  kind: z.enum(kinds),
  source: z.string(),
  note: z.string().exactOptional(),
})

const partsSchema = z.object({ bytes: count, crc32: z.string().regex(/^[0-9a-f]{8}$/) })
export type PartsSum = z.infer<typeof partsSchema>

/** Records that the service no longer has. */
const deletesSchema = z.object({
  /** How many were marked, by this publication. */
  marked: count,
  /** How many should have been and were not, because they are more than are allowed at once, or in doubt. */
  heldBack: count,
  /** Why they may be there all the same, where that is what holds them back. */
  doubt: z.string().exactOptional(),
  /** The first ids of either, in order. */
  first: z.array(z.string()),
})
export type Deletes = z.infer<typeof deletesSchema>

const tableSchema = z.object({
  name: z.string(),
  resource: z.string(),
  parent: z.string().exactOptional(),
  key: z.array(z.string()),
  columns: z.array(columnSchema),
  rows: count,
  /** Empty where the destination keeps no files (a warehouse). */
  files: z.array(fileSchema),
  /** The CSV rows it was made from, where no file is their copy: tells other contents under one name apart. */
  parts: partsSchema.exactOptional(),
  /** Rows that were left as they are, because the warehouse has newer ones of the same records. */
  kept: count.exactOptional(),
})
export type PublishedTable = z.infer<typeof tableSchema>

/** How the CSV files of an export are written. */
const dialectSchema = z.object({
  delimiter: z.enum([',', ';']),
  decimal: z.enum(['.', ',']),
  bom: z.boolean(),
  /** Whether cells that a spreadsheet would run as a formula begin with a `'` that is not part of them. */
  formulaGuard: z.boolean(),
  encoding: z.literal('utf-8'),
  lineEnd: z.literal('\n'),
  null: z.literal('an empty field; the empty string is ""'),
})
export type Dialect = z.infer<typeof dialectSchema>

/**
 * The account of one published export: what was asked for, what the read says of itself, and every file with its
 * sum. It holds no secret and no record's data. What is not in it was not published.
 */
export const manifestSchema = z.looseObject({
  version: z.literal(1),
  run: z.string(),
  resource: z.string(),
  destination: z.enum(destinationNames),
  workspace: z.string(),
  testMode: z.boolean(),
  mode: z.enum(['full', 'incremental', 'byId']),
  filters: z.record(z.string(), z.string()),
  /** Whether the read was told to end before the list did. */
  capped: z.boolean(),
  excluded: z.array(z.string()),
  hashed: z.array(z.string()),
  /** What tells the key of its hashes from another, without telling the key. */
  hashedWith: z.string().exactOptional(),
  ...readFactsSchema.shape,
  rejected: z.object({ rows: count, files: z.array(fileSchema) }),
  /** Only of documents by id: those that do not exist, the first of them by name. */
  missing: z.object({ rows: count, first: z.array(z.string()), files: z.array(fileSchema) }).exactOptional(),
  tables: z.array(tableSchema),
  dialect: dialectSchema.exactOptional(),
  /** Only in a warehouse: records that it did not have, and records with a later `updated` than it had. */
  changes: z.object({ new: count, changed: count }).exactOptional(),
  /**
   * Only in a warehouse: after a proven read of the whole list, or where a later one, published already, lacks records
   * that this publication brings.
   */
  deletes: deletesSchema.exactOptional(),
  /** What a person should look at, a sentence each, though the read is what its verdict says. */
  warnings: z.array(z.string()).exactOptional(),
  /** The page that shows all of this, where the destination keeps files. */
  report: fileSchema.omit({ rows: true }).exactOptional(),
  publishedAt: z.iso.datetime(),
  versions: z.record(z.string(), z.string()),
})
export type Manifest = z.infer<typeof manifestSchema>

/**
 * Whether a published export is of the read that is to be published. Another read may have found the same rows and
 * proven less: the first one's verdict is not its own.
 */
export const isSameRead = ({ facts }: { facts: ReadFacts }, { startedAt }: Manifest): boolean =>
  Date.parse(startedAt) === Date.parse(facts.startedAt)

export const manifestName = 'manifest.json'
