import { isAbsolute, relative, resolve } from 'node:path'

/** A folder was named to publish to that nobody allowed. */
export class FolderOutsideError extends Error {
  override readonly name = 'FolderOutsideError'
  readonly retryable = false
}

/**
 * The root that a run may publish to instead of the data folder's own: inside the data folder (a relative one is), or
 * inside one of the further folders that the settings allow. Absolute.
 * @throws {FolderOutsideError}
 */
export function allowedRoot(options: { out: string; dataDir: string; outDirs: readonly string[] }): string {
  const { out, dataDir, outDirs } = options
  const path = resolve(dataDir, out)
  const isInside = [dataDir, ...outDirs].some((root) => {
    const way = relative(root, path)
    return way === '' || (!/^\.\.($|[/\\])/.test(way) && !isAbsolute(way))
  })
  if (isInside) return path
  throw new FolderOutsideError(
    `out: ${out} lies outside the data folder. Name a folder inside it, or add its root to CONNECTOR_OUT_DIRS.`,
  )
}
