import { readdir } from 'node:fs/promises'
import type { Readable } from 'node:stream'
import { createDiskSet } from '../../storage/disk-set.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { createFolderStore } from '../../storage/folder-store.ts'
import { filesOf, manifestName, type Manifest } from '../manifest/manifest.ts'
import { MalformedManifestError, readManifest, readStoredManifest } from '../manifest/read-manifest.ts'
import { checkFile, type RowCheck } from './check-file.ts'
import { createTableCheck } from './check-rows.ts'
import { dialectOf, toHeader } from './dialect.ts'
import { missingHeader } from './stage-notes.ts'

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
 * Checks a folder of an export's files against its manifest, offline: every file's bytes and checksum; of CSV files also
 * header and rows, unique ids, and a parent for every child row; no extra files. Memory use is constant, whatever the
 * size.
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
      problems: [`${where} has no ${manifestName}: it is no export, or was never published.`],
    }
  return { manifest, problems: [...checkNames(names, manifest), ...(await checkFiles(files, manifest))] }
}

function checkNames(names: readonly string[], manifest: Manifest): string[] {
  const known = new Set([manifestName, ...filesOf(manifest).map((file) => file.path)])
  return names
    .filter((name) => !known.has(name))
    .map((name) => `${name} lies in the folder, and the manifest does not name it.`)
}

const missingIn = ({ missing }: Manifest) => (missing === undefined ? [] : [missing])

async function checkFiles({ open }: ExportFiles, manifest: Manifest): Promise<string[]> {
  const problems: string[] = []
  const dialect = manifest.dialect ?? dialectOf(false)
  const keys = createDiskSet({ cacheMiB: 64 })
  const hasRepeated = manifest.repeatedIds !== undefined
  try {
    for (const table of manifest.tables) {
      const isCsv = manifest.destination === 'csv'
      const header = isCsv ? toHeader(dialect, table.columns) : ''
      for (const file of table.files) {
        const check = isCsv
          ? createTableCheck({ table, keys, delimiter: dialect.delimiter, hasRepeated })
          : sumOnly(file.rows)
        problems.push(...(await checkFile({ open, file, header, check })))
      }
    }
    for (const file of manifest.rejected.files)
      problems.push(...(await checkFile({ open, file, header: '', check: sumOnly(file.rows) })))
    for (const file of missingIn(manifest).flatMap(({ files }) => files))
      problems.push(...(await checkFile({ open, file, header: missingHeader, check: sumOnly(file.rows) })))
    // Readers trust a page that says `proven`, so it is checked too.
    if (manifest.report !== undefined) {
      const file = { ...manifest.report, rows: 0 }
      problems.push(...(await checkFile({ open, file, header: '', check: sumOnly(0) })))
    }
  } finally {
    keys.close()
  }
  return problems
}

/** No check beyond bytes and checksum: the file's rows were counted when it was published. */
const sumOnly = (rows: number): RowCheck => ({ add: () => undefined, end: () => ({ rows, problems: [] }) })
