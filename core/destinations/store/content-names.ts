import { extname } from 'node:path'
import type { StagedFiles } from '../file-format.ts'
import type { Manifest } from '../manifest/manifest.ts'

interface NamedFile {
  path: string
  sha256: string
}

const markOf = ({ sha256 }: Pick<NamedFile, 'sha256'>) => `-${sha256.slice(0, 12)}`

/**
 * The name of a file in a store: with the beginning of its checksum, as in `customers-3f9a1c2b7d10.csv`. A store
 * has no rename, so no later attempt may write other contents under a name that a manifest may hold.
 */
export function contentName(file: NamedFile): string {
  const ending = extname(file.path)
  return `${file.path.slice(0, file.path.length - ending.length)}${markOf(file)}${ending}`
}

/** The name that the file has in a folder. */
function plainName(file: NamedFile): string {
  const ending = extname(file.path)
  const end = `${markOf(file)}${ending}`
  return file.path.endsWith(end) ? `${file.path.slice(0, file.path.length - end.length)}${ending}` : file.path
}

/** Files with the names that they have in a store. */
export const withContentNames = (files: StagedFiles): StagedFiles => rename(files, contentName)

/** A manifest of a store with the names that its files would have in a folder. */
export const withPlainNames = (manifest: Manifest): Manifest => rename(manifest, plainName)

function rename<T extends StagedFiles>(files: T, toName: (file: NamedFile) => string): T {
  const all = <F extends NamedFile>(list: readonly F[]) =>
    list.map((file) => ({ ...file, path: toName(file) }))
  const { tables, rejected, missing } = files
  return {
    ...files,
    tables: tables.map((table) => ({ ...table, files: all(table.files) })),
    rejected: { ...rejected, files: all(rejected.files) },
    ...(missing !== undefined && { missing: { ...missing, files: all(missing.files) } }),
  }
}
