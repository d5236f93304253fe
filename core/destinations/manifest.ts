import { posix } from 'node:path'
import { z } from 'zod'
import { outcomeSchema } from '../reading/outcome.ts'
import type { FileStore } from '../storage/file-store.ts'
import { createFolderStore } from '../storage/folder-store.ts'
import { tableSchema } from '../tables/table.ts'
import { totalsSchema } from '../tables/totals.ts'
import { destinationNames } from './names.ts'

const count = z.int().min(0)
const sha256 = z.string().regex(/^[0-9a-f]{64}$/, 'is not a SHA-256 sum')

/** The facts of a read: its outcome, its times, and what came. */
const readFactsSchema = z.object({
  ...outcomeSchema.shape,
  startedAt: z.iso.datetime({ offset: true }),
  finishedAt: z.iso.datetime({ offset: true }),
  totals: totalsSchema,
  /** The values that did not fit their columns, by path in the record, and what the first looks like. */
  drift: z.record(z.string(), z.object({ count, example: z.string() })),
  /** The fields that the schema lacks, by path, and how many objects have them. */
  unknownFields: z.record(z.string(), count),
  /** Those of them that no earlier export had. */
  newFields: z.array(z.string()).exactOptional(),
  /** The fields of the schema that no object has. */
  absentFields: z.array(z.string()),
  /** Those of them that an earlier export had. */
  vanishedFields: z.array(z.string()).exactOptional(),
  /** Incremental reads: the read covers what changed since then. */
  changedSince: z.string().exactOptional(),
})
export type ReadFacts = z.infer<typeof readFactsSchema>

/**
 * The time up to which a proven read has every change, in ms since 1970; undefined if nothing shows one. It is its
 * `completeThrough`, capped by the newest `updated` that the list showed before the read: the Date header may come from another
 * clock (a gateway's) that runs ahead of the one that writes `updated`, and changes made in between would fall between two reads.
 */
export const changesUpTo = ({
  completeThrough,
  newestUpdated,
}: Pick<ReadFacts, 'completeThrough' | 'newestUpdated'>): number | undefined =>
  completeThrough === null || newestUpdated === undefined
    ? undefined
    : Math.min(Date.parse(completeThrough), Date.parse(newestUpdated))

const fileSchema = z.object({
  /** Relative to the manifest and in the same folder. */
  path: z.string().regex(/^[^/\\]+$/, 'is not a plain file name'),
  rows: count,
  bytes: count,
  sha256,
})
export type PublishedFile = z.infer<typeof fileSchema>

const partsSchema = z.object({ bytes: count, sha256 })
export type PartsSum = z.infer<typeof partsSchema>

/** Records that the service no longer has. */
const deletesSchema = z.object({
  /** How many this publication marked. */
  marked: count,
  /** How many were not marked, because they exceed the limit or are in doubt. */
  heldBack: count,
  /** Why the records may still exist, if that is why they are held back. */
  doubt: z.string().exactOptional(),
  /** The first ids of both, in order. */
  first: z.array(z.string()),
})
export type Deletes = z.infer<typeof deletesSchema>

/** Why a record that another one names is not in the export, as half a sentence. */
export const danglingReasons = {
  deleted: 'deleted meanwhile',
  hidden: 'the service has it, and did not list it',
  elsewhere: 'it is data of the other mode',
  unread: 'the service has it, and the read of its list does not cover it',
  unnamed: 'nothing in the service names it any more',
  unknown: 'not looked up',
} as const
export type DanglingReason = keyof typeof danglingReasons

/** Whether the records that a field names are in the same run's export of their list. */
const referenceSchema = z.object({
  /** The path of the field: `subscriptions.lines.plan`. */
  field: z.string(),
  /** The list that it refers to. */
  to: z.string(),
  /** How many of its values were looked for, or why none was, as half a sentence. */
  checked: z.union([count, z.string()]),
  /** Both lists were read whole and are proven, and every record that the field names is there. */
  complete: z.boolean(),
  /** Ids that no record of the list has. */
  dangling: z.object({
    ids: count,
    reasons: z.partialRecord(z.enum(Object.keys(danglingReasons) as DanglingReason[]), count),
    /** The first of them, each with the reason and a record that names it. */
    first: z.array(
      z.object({
        id: z.string(),
        from: z.string(),
        reason: z.enum(Object.keys(danglingReasons) as DanglingReason[]),
      }),
    ),
  }),
})
export type Reference = z.infer<typeof referenceSchema>

const publishedTable = z.object({
  ...tableSchema.shape,
  rows: count,
  /** Empty if the destination keeps no files (a warehouse). */
  files: z.array(fileSchema),
  /** The parts that the table was made of: another read makes others. */
  parts: partsSchema.exactOptional(),
  /** Rows left unchanged, because the warehouse has newer versions of the same records. */
  kept: count.exactOptional(),
})
export type PublishedTable = z.infer<typeof publishedTable>

/** How the CSV files of an export are written. */
const dialectSchema = z.object({
  delimiter: z.enum([',', ';']),
  decimal: z.enum(['.', ',']),
  bom: z.boolean(),
  /**
   * Whether cells that a spreadsheet would run as a formula are prefixed with a `'` that is not part of the
   * value.
   */
  formulaGuard: z.boolean(),
  encoding: z.literal('utf-8'),
  lineEnd: z.literal('\n'),
  null: z.literal('an empty field; the empty string is ""'),
})
export type Dialect = z.infer<typeof dialectSchema>

/**
 * The manifest of one published export: what was requested, the facts of the read, and every file with its
 * checksum. It holds no secret and no record data. A file that is not listed was not published.
 */
export const manifestSchema = z.object({
  version: z.literal(1),
  run: z.string(),
  resource: z.string(),
  destination: z.enum(destinationNames),
  workspace: z.string(),
  testMode: z.boolean(),
  mode: z.enum(['full', 'incremental', 'byId']),
  filters: z.record(z.string(), z.string()),
  /** Whether a limit ended the read before the list did. */
  capped: z.boolean(),
  excluded: z.array(z.string()),
  hashed: z.array(z.string()),
  /** Identifies the hash key without revealing it. */
  hashedWith: z.string().exactOptional(),
  ...readFactsSchema.shape,
  rejected: z.object({ rows: count, files: z.array(fileSchema) }),
  /** Only for documents by id: the ids that do not exist, the first of them by name. */
  missing: z.object({ rows: count, first: z.array(z.string()), files: z.array(fileSchema) }).exactOptional(),
  /** Only for lists: how the read came to its verdict, for others to check. That of a warehouse is in a `folder` of the exports. */
  certificate: z
    .object({ rows: count, files: z.array(fileSchema), folder: z.string().exactOptional() })
    .exactOptional(),
  /** Set for a list whose records name those of other lists of the run. */
  references: z.array(referenceSchema).exactOptional(),
  tables: z.array(publishedTable),
  dialect: dialectSchema.exactOptional(),
  /**
   * Warehouses only: records that were not there before, and records with a later `updated` than the stored
   * one.
   */
  changes: z.object({ new: count, changed: count }).exactOptional(),
  /**
   * Warehouses only: after a proven read of the whole list, or if a later one, already published, lacks
   * records that this publication brings.
   */
  deletes: deletesSchema.exactOptional(),
  /** Things to check despite the verdict, one sentence each. */
  warnings: z.array(z.string()).exactOptional(),
  publishedAt: z.iso.datetime(),
  versions: z.record(z.string(), z.string()),
})
export type Manifest = z.infer<typeof manifestSchema>

/** All files of a published export but the manifest itself. */
export const filesOf = ({
  tables,
  rejected,
  missing,
  certificate,
}: Pick<Manifest, 'tables' | 'rejected' | 'missing' | 'certificate'>) =>
  [...tables, rejected, missing, certificate].flatMap((one) => one?.files ?? [])

/**
 * Whether a published export came from the read being published. Another read may find the same rows but
 * prove less, so it must not take over the first one's verdict.
 */
export const isSameRead = ({ facts }: { facts: ReadFacts }, { startedAt }: Manifest): boolean =>
  Date.parse(startedAt) === Date.parse(facts.startedAt)

export const manifestName = 'manifest.json'

/** The folder has a manifest that cannot be parsed. */
export class MalformedManifestError extends Error {
  override readonly name = 'MalformedManifestError'
  readonly retryable = false
}

/**
 * Reads the manifest of an export's folder; undefined if there is none.
 * @throws {MalformedManifestError}
 */
export const readManifest = (folder: string): Promise<Manifest | undefined> =>
  readStoredManifest(createFolderStore(folder), '')

/**
 * Reads the manifest of an export in a store; undefined if there is none.
 * @throws {MalformedManifestError}
 */
export async function readStoredManifest(store: FileStore, path: string): Promise<Manifest | undefined> {
  const file = posix.join(path, manifestName)
  const text = await store.readText(file)
  if (text === undefined) return undefined
  const malformed = (why: string) => new MalformedManifestError(`${store.locate(file)} ${why}.`)
  let json: unknown
  try {
    json = JSON.parse(text)
  } catch {
    throw malformed('is not JSON')
  }
  const { data, error } = manifestSchema.safeParse(json)
  if (data !== undefined) return data
  const [issue] = error.issues
  throw malformed(`is not a manifest of this connector: ${issue?.path.join('.')} ${issue?.message}`)
}
