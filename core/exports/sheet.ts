import { createHash } from 'node:crypto'
import { dirname } from 'node:path'
import type { ResourceName } from '../billing/resources/lists.ts'
import type { Published } from '../destinations/destination.ts'
import { filesOf, type Manifest, manifestName } from '../destinations/manifest.ts'
import type { DestinationName } from '../destinations/names.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import type { FileStore } from '../storage/file-store.ts'
import { createFolderStore } from '../storage/folder-store.ts'

/** A file of an export. Of the manifest nothing counts rows. */
interface SheetFile {
  path: string
  rows?: number
  sha256: string
}

/**
 * What the report and the page of a run say of a publication: the manifest, without the columns. A note of the run, so that
 * Temporal need not carry it, and nobody can change it there.
 */
export type Sheet = Omit<Manifest, 'tables'> &
  Pick<Published, 'location' | 'manifestPath'> & {
    tables: { name: string; rows: number }[]
    /** Of a warehouse, the certificate and the manifest beside it. */
    files: SheetFile[]
  }

/** What the page of a run says of its publications, by list and destination. */
export type Sheets = Readonly<Partial<Record<ReturnType<typeof sheetOf>, Sheet>>>

/** The note of a run on what it published in one destination. */
export const sheetOf = (resource: ResourceName, destination: DestinationName) =>
  `sheet of ${resource} to ${destination}` as const

export async function toSheet(
  { manifest, manifestPath, location }: Published,
  store: FileStore | undefined,
): Promise<Sheet> {
  const files = filesOf(manifest).map(({ path, rows, sha256 }) => ({ path, rows, sha256 }))
  const own = manifestPath === undefined ? undefined : await sumOf(manifestPath, store)
  return {
    ...manifest,
    location,
    ...(manifestPath !== undefined && { manifestPath }),
    tables: manifest.tables.map(({ name, rows }) => ({ name, rows })),
    files: own === undefined ? files : [{ path: manifestName, sha256: own }, ...files],
  }
}

/** The checksum of a manifest as it was written; undefined if it has been removed since. */
async function sumOf(manifest: string, store: FileStore | undefined): Promise<string | undefined> {
  const place = store ?? createFolderStore(dirname(manifest))
  const text = await place.readText(place.pathOf(manifest) ?? manifestName)
  return text === undefined ? undefined : createHash('sha256').update(text).digest('hex')
}

export const notedSheets = (notes: Pick<RunNotes, 'read'>, run: string): Promise<Sheets> =>
  notes.read<Record<keyof Sheets, Sheet>>(run)
