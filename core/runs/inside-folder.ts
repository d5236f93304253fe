import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import type { SharedFolder } from '../storage/cached.ts'
import { resolveInside } from '../storage/inside.ts'
import { InvalidInput } from './errors.ts'
import { connector } from './view/shell.ts'

/**
 * Resolves a path inside the data folder: a run may read nothing else on the worker's machine. Several workers have the
 * file where they share theirs; a person may have put another one in its place.
 *
 * @throws {InvalidInput} the file is outside, missing or unreadable
 */
export async function insideFolder({
  dataDir,
  shared,
  path,
  command,
}: {
  dataDir: string
  shared: SharedFolder
  path: string
  /** The command that accepts files from elsewhere. */
  command: 'import' | 'fetch'
}): Promise<string> {
  const real = await resolveInside({ root: dataDir, path: resolve(dataDir, path) })
  if (real === undefined)
    throw new InvalidInput(
      `${path} lies outside the data folder. Put it there, or name it to \`${connector`${command}`}\`, which does so.`,
    )
  if (shared.isShared) await shared.fetch(resolve(dataDir, path), { changes: true })
  await access(real).catch((cause: NodeJS.ErrnoException) => {
    const isMissing = cause.code === 'ENOENT' || cause.code === 'ENOTDIR'
    const why = isMissing
      ? `There is no file ${path} in the data folder.`
      : `${path} can't be read by the worker.`
    throw new InvalidInput(why, { cause })
  })
  return real
}
