import { readlink, realpath } from 'node:fs/promises'
import { basename, dirname, isAbsolute, join, relative, resolve } from 'node:path'
import { isSystemError } from './system-errors.ts'

/**
 * Resolves every link in `path`, as far as it exists; undefined if the result lies outside `root`, whose
 * links are resolved too. A file that does not exist yet counts as lying where it would be created.
 */
export async function resolveInside({
  root,
  path,
}: {
  root: string
  path: string
}): Promise<string | undefined> {
  const [realRoot, real] = await Promise.all([realOf(root), realOf(path)])
  if (realRoot === undefined || real === undefined) return undefined
  const way = relative(realRoot, real)
  const isOutside = /^\.\.($|[/\\])/.test(way) || isAbsolute(way)
  return isOutside ? undefined : real
}

/** Undefined for what no file system accepts as a path: NUL bytes, circular links. */
async function realOf(path: string): Promise<string | undefined> {
  if (path.includes('\0')) return undefined
  try {
    return await realpath(path)
  } catch (error) {
    if (isSystemError(error, 'ELOOP')) return undefined
  }
  const parent = dirname(path)
  if (parent === path) return undefined
  const realParent = await realOf(parent)
  if (realParent === undefined) return undefined
  // A link to a missing file: writing here would create it there.
  const target = await readlink(path).catch(() => undefined)
  if (target === undefined) return join(realParent, basename(path))
  // Not joined, which would drop `way/..`: its target depends on what `way` links to.
  return await realOf(isAbsolute(target) ? target : `${realParent}/${target}`)
}

/** The requested publication folder is outside every allowed root. */
export class FolderOutsideError extends Error {
  override readonly name = 'FolderOutsideError'
  readonly retryable = false
}

/**
 * Resolves the root a run may publish to instead of the data folder's own: a folder inside the data folder
 * (relative paths are taken from there) or inside one of the further folders that the settings allow. Links
 * are resolved for the check only: the result is absolute but keeps the given name, so that the root stays
 * the same one when an administrator moves a link.
 * @throws {FolderOutsideError}
 */
export async function allowedRoot(options: {
  out: string
  dataDir: string
  outDirs: readonly string[]
}): Promise<string> {
  const { out, dataDir, outDirs } = options
  const path = resolve(dataDir, out)
  for (const root of [dataDir, ...outDirs])
    if ((await resolveInside({ root, path })) !== undefined) return path
  throw new FolderOutsideError(
    `out: ${out} lies outside the data folder. Name a folder inside it, or add its root to CONNECTOR_OUT_DIRS.`,
  )
}

/**
 * Rejects a path that leads out of the root through a link: others may be able to write to a shared folder.
 * @throws {FolderOutsideError}
 */
export async function refuseLinkOut({ root, path }: { root: string; path: string }): Promise<void> {
  if ((await resolveInside({ root, path })) !== undefined) return
  throw new FolderOutsideError(`${path} is reached by a link that leads out of ${root}. Remove the link.`)
}
