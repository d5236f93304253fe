import { resolve } from 'node:path'
import { resolveInside } from './inside.ts'

/** A folder was named to publish to that nobody allowed. */
export class FolderOutsideError extends Error {
  override readonly name = 'FolderOutsideError'
  readonly retryable = false
}

/**
 * The root that a run may publish to instead of the data folder's own: inside the data folder (a relative one is), or
 * inside one of the further folders that the settings allow. Links are resolved before this is decided. Absolute, and
 * as it was named: a link may be moved by whoever administers the machine, and the root stays the same one.
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
 * Refuses to publish through a link that leads out of the root: others may write to a shared folder.
 * @throws {FolderOutsideError}
 */
export async function refuseLinkOut({ root, path }: { root: string; path: string }): Promise<void> {
  if ((await resolveInside({ root, path })) !== undefined) return
  throw new FolderOutsideError(`${path} is reached by a link that leads out of ${root}. Remove the link.`)
}
