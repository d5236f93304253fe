import { dirname } from 'node:path'
import { isDeepStrictEqual } from 'node:util'
import {
  type Manifest,
  MalformedManifestError,
  readManifest,
  readStoredManifest,
} from '../destinations/manifest.ts'
import { isFileDestination } from '../destinations/names.ts'
import { isAddress, type Publication } from '../state/publications.ts'
import type { FileStore } from '../storage/file-store.ts'
import { isSystemError } from '../storage/system-errors.ts'

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
  when: (published: Publication) => boolean
}

/**
 * Finds the qualifying proven publication with the latest read. The manifest must confirm the verdict: a folder that
 * was deleted or changed since proves nothing, nor does one in a store other than this.
 * @throws {StoreAwayError | StoreRefusedError} or the error of a disk
 */
export async function findProven(options: {
  published: readonly Publication[]
  wanted: Wanted
  files: FileStore | undefined
}): Promise<Publication | undefined> {
  const { published, wanted, files } = options
  const likely = published.filter((one) => one.verdict === 'proven' && isOf(one, wanted) && wanted.when(one))
  for (const one of likely.toSorted((a, b) => Date.parse(b.startedAt) - Date.parse(a.startedAt)))
    if (await isStillThere(one, files)) return one
  return undefined
}

function isOf(published: Publication, wanted: Wanted): boolean {
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
    (isDeepStrictEqual(published.filters, filters) || Object.keys(published.filters).length === 0)
  )
}

/** Whether a publication is of a list; documents fetched by id are not. */
const isOfList = ({ mode }: Pick<Publication, 'mode'>): boolean => mode !== 'byId'

/** Whether a publication covers the whole list, or all of its changes, in a form for programs. */
export const isWhole = (published: Pick<Publication, 'mode' | 'filters' | 'capped' | 'forExcel'>): boolean =>
  isOfList(published) &&
  Object.keys(published.filters).length === 0 &&
  !published.capped &&
  !published.forExcel

const isWithin = (columns: readonly string[], allowed: readonly string[] | undefined): boolean =>
  allowed === undefined || columns.every((column) => allowed.includes(column))

async function isStillThere(
  { manifest, run, destination }: Pick<Publication, 'manifest' | 'run' | 'destination'>,
  files: FileStore | undefined,
): Promise<boolean> {
  // A warehouse has its own manifest.
  if (manifest === undefined || !isFileDestination(destination)) return true
  const found = await manifestAt(manifest, files)
  return found?.verdict === 'proven' && found.run === run
}

/**
 * Reads a published manifest; undefined if it is not there, malformed, or in a store other than this. A store or disk
 * that does not answer must not count as an export that is gone, so its error is thrown.
 */
export async function manifestAt(
  manifest: string,
  files: FileStore | undefined,
): Promise<Manifest | undefined> {
  const path = files?.pathOf(dirname(manifest))
  if (isAddress(manifest) && path === undefined) return undefined
  try {
    return await (isAddress(manifest) && files !== undefined && path !== undefined
      ? readStoredManifest(files, path)
      : readManifest(dirname(manifest)))
  } catch (error) {
    // A file where the folder was is not an export either.
    if (error instanceof MalformedManifestError || isSystemError(error, 'ENOTDIR')) return undefined
    throw error
  }
}
