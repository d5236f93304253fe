import { posix } from 'node:path'
import type { FileStore } from '../../storage/file-store.ts'
import { createFolderStore } from '../../storage/folder-store.ts'
import type { Comparison, Warehouse } from '../destination.ts'
import { InvalidInput } from '../../runs/errors.ts'
import {
  filesOf,
  manifestName,
  type Manifest,
  type PublishedFile,
  MalformedManifestError,
  readStoredManifest,
} from '../manifest.ts'
import { sumBytes } from '../parts.ts'

export interface Verified {
  /** Undefined if there is no readable manifest. */
  manifest: Manifest | undefined
  /** One sentence each; empty if everything is there as it was published. */
  problems: string[]
}

/** Checks an export in a local folder: see `verifyStoredExport`. */
export const verifyExport = (folder: string): Promise<Verified> =>
  verifyStoredExport(createFolderStore(folder), '')

/**
 * Checks the files of an export against its manifest, offline: every file's bytes and checksum. Their rows were checked when it
 * was published. A folder must have no other files. Elsewhere, an attempt that died may have left some, and nothing leads to
 * them. Memory use is constant, whatever the size.
 */
export async function verifyStoredExport(store: FileStore, path: string): Promise<Verified> {
  const where = store.locate(path)
  let manifest: Manifest | undefined
  try {
    manifest = await readStoredManifest(store, path)
  } catch (error) {
    if (error instanceof MalformedManifestError) return { manifest, problems: [error.message] }
    throw error
  }
  if (manifest === undefined)
    return {
      manifest,
      problems: [`${where} has no ${manifestName}: it is not the folder of an export, as .../latest is.`],
    }
  const files = filesOf(manifest)
  const problems = store.folder === undefined ? [] : await findStrangers(store, path, files)
  for (const file of files) problems.push(...(await checkFile(store, path, file)))
  return { manifest, problems }
}

async function findStrangers(
  store: FileStore,
  folder: string,
  files: readonly PublishedFile[],
): Promise<string[]> {
  const known = new Set([manifestName, ...files.map((file) => file.path)])
  const names = (await store.list(folder)).map(({ path }) => posix.relative(folder, path))
  return names
    .filter((name) => !known.has(name))
    .map((name) => `${name} is in the folder but not in the manifest.`)
}

async function checkFile(
  store: FileStore,
  folder: string,
  { path, bytes, sha256 }: PublishedFile,
): Promise<string[]> {
  const stream = await store.open(posix.join(folder, path))
  if (stream === undefined) return [`${path} is missing.`]
  const found = await sumBytes(stream)
  if (found.bytes !== bytes) return [`${path} has ${found.bytes} bytes, and the manifest says ${bytes}.`]
  return found.sha256 === sha256 ? [] : [`${path} is not as it was published: its SHA-256 sum is another.`]
}

/**
 * Checks the tables of a warehouse against the verified files of an export in CSV.
 * @throws {InvalidInput | WarehouseAwayError | WarehouseRefusedError}
 */
export async function verifyWarehouse(options: {
  destination: Pick<Warehouse, 'compare'>
  manifest: Manifest
  /** The export's folder. */
  folder: string
  schema?: string | undefined
}): Promise<Comparison> {
  const { destination, manifest, folder, schema } = options
  if (manifest.destination !== 'csv' || manifest.dialect?.formulaGuard === true)
    throw new InvalidInput(
      `${folder} holds no plain CSV files; a warehouse is compared with an export to csv.`,
    )
  return await destination.compare({ manifest, folder, schema })
}
