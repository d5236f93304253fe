import { access, realpath } from 'node:fs/promises'
import { isAbsolute, relative, resolve } from 'node:path'
import { InvalidInput } from './errors.ts'

/** A run may read what lies in the data folder, and nothing else of the worker's machine. */
export async function insideFolder({
  dataDir,
  path,
  command,
}: {
  dataDir: string
  path: string
  /** The command that takes a file from elsewhere. */
  command: 'import' | 'fetch'
}): Promise<string> {
  const full = resolve(dataDir, path)
  const root = await realpath(dataDir)
  const real = await realpath(full).catch(() => undefined)
  const way = relative(root, real ?? full)
  if (way.startsWith('..') || isAbsolute(way))
    throw new InvalidInput(
      `${path} lies outside the data folder. Put it there, or name it to \`connector ${command}\`, which does so.`,
    )
  if (real === undefined) throw new InvalidInput(`There is no file ${path} in the data folder.`)
  await access(real).catch((cause: unknown) => {
    throw new InvalidInput(`${path} can't be read by the worker.`, { cause })
  })
  return real
}
