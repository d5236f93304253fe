import { mkdir, readFile } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { z } from 'zod'
import { appendLines } from '../storage/durable.ts'
import { toFileName } from '../storage/file-name.ts'
import type { Manifest } from '../destinations/manifest/manifest.ts'
import {
  MalformedManifestError,
  readManifest,
  readStoredManifest,
} from '../destinations/manifest/read-manifest.ts'
import type { Publications } from '../state/publications.ts'
import type { FileStore } from '../storage/file-store.ts'
import { orMissing } from '../storage/system-errors.ts'

const publishedSchema = z.object({
  resource: z.string(),
  destination: z.string(),
  run: z.string(),
  workspace: z.string(),
  testMode: z.boolean(),
  verdict: z.enum(['proven', 'unproven']),
  mode: z.enum(['full', 'incremental', 'byId']),
  filters: z.record(z.string(), z.string()),
  /** Whether `maxPages` ended the read before the end of the list. */
  capped: z.boolean(),
  /** The publishing root or schema, if the export named one. */
  place: z.string().exactOptional(),
  /** `excluded` columns are missing; `hashed` columns do not have the service's values. */
  excluded: z.array(z.string()).default([]),
  hashed: z.array(z.string()).default([]),
  /** Formatted for a person in Excel, not for programs. */
  forExcel: z.boolean().default(false),
  /** When the run that read it was started, by Temporal's clock: the read began later. */
  startedAt: z.iso.datetime({ offset: true }),
  publishedAt: z.iso.datetime({ offset: true }),
  /** The fields that the schema lacks, and those of the schema that no record had. */
  unknownFields: z.array(z.string()).exactOptional(),
  absentFields: z.array(z.string()).exactOptional(),
  /** Path or address of the manifest; absent where the destination keeps none (a warehouse). */
  manifest: z.string().exactOptional(),
})
/** One entry of the publication log. */
export type PublishedNote = z.infer<typeof publishedSchema>

/** Where publications are logged. */
interface LogPlace {
  dataDir: string
  /** The log of several workers; undefined for the data folder's own, `exports/published.jsonl`. */
  publications?: Publications | undefined
}

const fileOf = (dataDir: string) => join(dataDir, 'exports', 'published.jsonl')

/**
 * Appends a publication to the publication log, which shows how fresh each destination is without querying the
 * warehouses. The same publication may be logged twice.
 */
export async function notePublished(options: LogPlace & { published: PublishedNote }): Promise<void> {
  const { dataDir, publications, published } = options
  const { manifest } = published
  // Relative, because a data folder may be moved.
  const noted = manifest === undefined || isAddress(manifest) ? manifest : relative(dataDir, manifest)
  const line = JSON.stringify({ ...published, ...(noted !== undefined && { manifest: noted }) })
  if (publications !== undefined) return await publications.add(line)
  const path = fileOf(dataDir)
  await mkdir(dirname(path), { recursive: true })
  await appendLines(path, [line])
}

/** Reads every publication in this mode, oldest first. Manifest paths are absolute. */
export async function readPublished(options: LogPlace & { testMode: boolean }): Promise<PublishedNote[]> {
  return (await readNotes(options))
    .filter(({ testMode }) => testMode === options.testMode)
    .map(({ manifest, ...one }) => ({
      ...one,
      ...(manifest !== undefined && {
        manifest: isAddress(manifest) ? manifest : resolve(options.dataDir, manifest),
      }),
    }))
}

/** Whether a manifest is in a bucket rather than in a folder. */
export const isAddress = (manifest: string) => manifest.startsWith('s3://')

/** The folder names of all runs that have published. */
export const foldersPublished = async (place: LogPlace): Promise<ReadonlySet<string>> =>
  new Set((await readNotes(place)).map(({ run }) => toFileName(run)))

async function readNotes({ dataDir, publications }: LogPlace): Promise<PublishedNote[]> {
  const lines = publications === undefined ? await readLines(fileOf(dataDir)) : await publications.all()
  return lines.flatMap(toPublished)
}

async function readLines(path: string): Promise<string[]> {
  return (await orMissing(readFile(path, 'utf8')))?.split('\n') ?? []
}

function toPublished(line: string): PublishedNote[] {
  if (line === '') return []
  try {
    const parsed = publishedSchema.safeParse(JSON.parse(line))
    return parsed.success ? [parsed.data] : []
  } catch {
    return []
  }
}

/** Which publications qualify: those of this list, to this place, with at least these records and columns. */
export interface Wanted {
  resource: string
  destination: string
  mode?: 'full' | 'incremental' | undefined
  filters?: Readonly<Record<string, string>> | undefined
  place?: string | undefined
  /** Columns that may be missing. If absent, any columns qualify. */
  excluded?: readonly string[] | undefined
  hashed?: readonly string[] | undefined
  forExcel?: boolean | undefined
  /** Whether the publication is recent enough, or of the right scheduled slot. */
  when: (published: PublishedNote) => boolean
}

/**
 * Finds the qualifying proven publication with the latest read. The manifest must confirm the verdict: a folder that
 * was deleted or changed since proves nothing, nor does one in a store other than this.
 * @throws {StoreAwayError | StoreRefusedError}
 */
export async function findProven(options: {
  published: readonly PublishedNote[]
  wanted: Wanted
  files: FileStore | undefined
}): Promise<PublishedNote | undefined> {
  const { published, wanted, files } = options
  const likely = published.filter((one) => one.verdict === 'proven' && isOf(one, wanted) && wanted.when(one))
  for (const one of likely.toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt)))
    if (await isStillThere(one, files)) return one
  return undefined
}

function isOf(published: PublishedNote, wanted: Wanted): boolean {
  const { filters = {}, mode = 'incremental', excluded, hashed, forExcel = false } = wanted
  return (
    isOfList(published) &&
    published.forExcel === forExcel &&
    isWithin(published.excluded, excluded) &&
    isWithin(published.hashed, hashed) &&
    published.resource === wanted.resource &&
    published.destination === wanted.destination &&
    published.place === wanted.place &&
    // A full read qualifies where an incremental one is wanted, but not the reverse.
    (published.mode === 'full' || mode === 'incremental') &&
    (isSame(published.filters, filters) || Object.keys(published.filters).length === 0)
  )
}

/** Whether a publication is of a list; documents fetched by id are not. */
export const isOfList = ({ mode }: Pick<PublishedNote, 'mode'>): boolean => mode !== 'byId'

/** Whether a publication covers the whole list, or all of its changes, in a form for programs. */
export const isWhole = (
  published: Pick<PublishedNote, 'mode' | 'filters' | 'capped' | 'forExcel'>,
): boolean =>
  isOfList(published) &&
  Object.keys(published.filters).length === 0 &&
  !published.capped &&
  !published.forExcel

const isWithin = (columns: readonly string[], allowed: readonly string[] | undefined): boolean =>
  allowed === undefined || columns.every((column) => allowed.includes(column))

function isSame(a: Readonly<Record<string, string>>, b: Readonly<Record<string, string>>): boolean {
  const names = Object.keys(a)
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name])
}

async function isStillThere(
  { manifest, run }: PublishedNote,
  files: FileStore | undefined,
): Promise<boolean> {
  if (manifest === undefined) return true
  const found = await readNotedManifest(manifest, files)
  return found?.verdict === 'proven' && found.run === run
}

/** Reads a manifest of the log; undefined if it is not there, malformed, or in a store other than this. */
export async function readNotedManifest(
  manifest: string,
  files: FileStore | undefined,
): Promise<Manifest | undefined> {
  if (!isAddress(manifest)) return await readManifest(dirname(manifest)).catch(() => undefined)
  const path = files?.pathOf(dirname(manifest))
  if (files === undefined || path === undefined) return undefined
  try {
    return await readStoredManifest(files, path)
  } catch (error) {
    // A store that does not answer must not count as an export that is gone.
    if (error instanceof MalformedManifestError) return undefined
    throw error
  }
}
