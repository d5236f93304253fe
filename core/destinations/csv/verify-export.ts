import { createHash } from 'node:crypto'
import { readdir } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import type { FileStore } from '../../storage/file-store.ts'
import { createFolderStore } from '../../storage/folder-store.ts'
import { filesOf, manifestName, type Manifest } from '../manifest/manifest.ts'
import { MalformedManifestError, readManifest, readStoredManifest } from '../manifest/read-manifest.ts'

export interface Verified {
  /** Undefined if the folder has no readable manifest. */
  manifest: Manifest | undefined
  /** One sentence each; empty if the folder holds exactly what was published. */
  problems: string[]
}

/** Where the files of an export are. */
interface ExportFiles {
  where: string
  /** The names of all files there, for places where others do not belong; undefined if there is no such place. */
  names: () => Promise<readonly string[] | undefined>
  manifest: () => Promise<Manifest | undefined>
  open: (name: string) => Promise<Readable | undefined>
}

/**
 * Checks a folder of an export's files against its manifest, offline: every file's bytes and checksum, and no extra files.
 * Memory use is constant, whatever the size.
 */
export const verifyExport = (folder: string): Promise<Verified> =>
  verify({
    where: folder,
    names: () =>
      readdir(folder).catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return undefined
        throw error
      }),
    manifest: () => readManifest(folder),
    open: (name) => createFolderStore(folder).open(name),
  })

/**
 * Checks an export in a store in the same way. Files that the manifest does not name are no problem there: an attempt
 * that died may have left them, and nothing leads to them.
 */
export const verifyStoredExport = (store: FileStore, folder: string): Promise<Verified> =>
  verify({
    where: store.locate(folder),
    names: () => Promise.resolve([]),
    manifest: () => readStoredManifest(store, folder),
    open: (name) => store.open(`${folder}/${name}`),
  })

async function verify(files: ExportFiles): Promise<Verified> {
  const { where } = files
  const names = await files.names()
  if (names === undefined) return { manifest: undefined, problems: [`There is no folder ${where}.`] }
  let manifest: Manifest | undefined
  try {
    manifest = await files.manifest()
  } catch (error) {
    if (error instanceof MalformedManifestError) return { manifest, problems: [error.message] }
    throw error
  }
  if (manifest === undefined)
    return {
      manifest,
      problems: [`${where} has no ${manifestName}: it is not an export, or was never published.`],
    }
  return { manifest, problems: [...checkNames(names, manifest), ...(await checkFiles(files, manifest))] }
}

function checkNames(names: readonly string[], manifest: Manifest): string[] {
  const known = new Set([manifestName, ...filesOf(manifest).map((file) => file.path)])
  return names
    .filter((name) => !known.has(name))
    .map((name) => `${name} lies in the folder, and the manifest does not name it.`)
}

async function checkFiles(files: ExportFiles, manifest: Manifest): Promise<string[]> {
  const problems: string[] = []
  for (const file of filesOf(manifest)) problems.push(...(await checkFile(files, file)))
  return problems
}

/** Checks a file's bytes against the manifest: its rows were checked against those that were read when it was published. */
async function checkFile(
  { open }: ExportFiles,
  { path, bytes, sha256 }: ReturnType<typeof filesOf>[number],
): Promise<string[]> {
  const stream = await open(path)
  if (stream === undefined) return [`${path} is missing.`]
  const hash = createHash('sha256')
  let found = 0
  for await (const chunk of stream as AsyncIterable<Buffer>) {
    hash.update(chunk)
    found += chunk.length
  }
  if (found !== bytes) return [`${path} has ${found} bytes, and the manifest says ${bytes}.`]
  return hash.digest('hex') === sha256
    ? []
    : [`${path} is not as it was published: its SHA-256 sum is another.`]
}
