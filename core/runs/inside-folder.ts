import { access } from 'node:fs/promises'
import { resolve } from 'node:path'
import { resolveInside } from '../storage/inside.ts'
import { InvalidInput } from './errors.ts'
import { connector } from './view/shell.ts'

/**
 * Resolves a path inside the data folder: a run may read nothing else on the worker's machine.
 * @throws {InvalidInput} the file is outside, missing or unreadable
 */
export async function insideFolder({
  dataDir,
  path,
  command,
}: {
  dataDir: string
  path: string
  /** The command that accepts files from elsewhere. */
  command: 'import' | 'fetch'
}): Promise<string> {
  const real = await resolveInside({ root: dataDir, path: resolve(dataDir, path) })
  if (real === undefined)
    throw new InvalidInput(
      `${path} lies outside the data folder. Put it there, or name it to \`${connector`${command}`}\`, which does so.`,
    )
  await access(real).catch((cause: NodeJS.ErrnoException) => {
    const isMissing = cause.code === 'ENOENT' || cause.code === 'ENOTDIR'
    const why = isMissing
      ? `There is no file ${path} in the data folder.`
      : `${path} can't be read by the worker.`
    throw new InvalidInput(why, { cause })
  })
  return real
}
