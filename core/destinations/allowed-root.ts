import { resolve } from 'node:path'
import { resolveInside } from '../storage/inside.ts'

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
