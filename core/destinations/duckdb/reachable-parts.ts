import { copyFile, mkdir, stat, symlink, truncate } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { PartFile } from '../destination.ts'
import { PartsDamagedError } from '../errors.ts'

/**
 * The parts as files that DuckDB can read: it takes whole files only, and characters such as `*` in a path for a
 * pattern. What does not suit gets a name, or a copy without what does not count, in a folder of the caller.
 * @throws {PartsDamagedError}
 */
export async function reachableParts(parts: readonly PartFile[], folder: string): Promise<string[]> {
  const paths: string[] = []
  for (const [at, part] of parts.entries()) {
    if (part.bytes === 0) continue
    const path = resolve(part.path)
    const size = await stat(path).then(
      (found) => found.size,
      (cause: unknown) => {
        throw new PartsDamagedError(`The part file ${path} can't be read. Run the export again.`, { cause })
      },
    )
    if (size === part.bytes && !/[*?[\]{}]/.test(path)) paths.push(path)
    else
      paths.push(await place(path, { to: join(folder, `${part.table}.${at}.csv`), size, bytes: part.bytes }))
  }
  return paths
}

async function place(path: string, given: { to: string; size: number; bytes: number }): Promise<string> {
  const { to, size, bytes } = given
  await mkdir(join(to, '..'), { recursive: true })
  if (size === bytes) {
    await symlink(path, to)
    return to
  }
  // The file system may share the blocks; a part with a rest is left only by a process that died.
  await copyFile(path, to)
  await truncate(to, bytes)
  return to
}
