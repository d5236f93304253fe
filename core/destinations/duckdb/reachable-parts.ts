import { copyFile, mkdir, stat, symlink, truncate } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import type { PartFile } from '../destination.ts'
import { PartsDamagedError } from '../errors.ts'

/**
 * The parts as files that DuckDB can read: it reads files to their end and treats characters such as `*` in
 * a path as a pattern. Unsuitable files get another name, or a copy without the bytes that do not count, in
 * the caller's folder.
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
  // The file system may share the blocks; only a process that died leaves a part with trailing bytes.
  await copyFile(path, to)
  await truncate(to, bytes)
  return to
}
