import { access, realpath } from 'node:fs/promises'
import { isAbsolute, relative, resolve } from 'node:path'
import type { InputFiles } from '../imports/copy-input.ts'
import { conventionsIn, type Mapping, readMapping, toMapping } from '../imports/mapping.ts'
import { InvalidInput } from './errors.ts'
import type { AskedImport } from './import-input.ts'

/** The files that an input names, each of them in the data folder, and the mapping that they are read by. */
export async function findInput({
  asked,
  dataDir,
}: {
  asked: AskedImport
  dataDir: string
}): Promise<InputFiles> {
  const inside = (path: string) => insideFolder({ dataDir, path })
  const base: Mapping = asked.mapping === undefined ? {} : await readMapping(await inside(asked.mapping))
  for (const path of Object.values(base.lookups ?? {})) await inside(path)
  const { locale, decimal, dates } = asked
  const said = {
    ...(locale !== undefined && { locale }),
    ...(decimal !== undefined && { decimal }),
    ...(dates !== undefined && { dates }),
  }
  const mapping = toMapping({ base, ...said })
  // An unknown locale is told at once.
  conventionsIn(mapping)
  return {
    file: await inside(asked.file),
    ...(asked.lines !== undefined && { lines: await inside(asked.lines) }),
    mapping,
  }
}

/** A run may read what lies in the data folder, and nothing else of the worker's machine. */
async function insideFolder({ dataDir, path }: { dataDir: string; path: string }): Promise<string> {
  const full = resolve(dataDir, path)
  const root = await realpath(dataDir)
  const real = await realpath(full).catch(() => undefined)
  const way = relative(root, real ?? full)
  if (way.startsWith('..') || isAbsolute(way))
    throw new InvalidInput(
      `${path} lies outside the data folder. Put it there, or name it to \`connector import\`, which does so.`,
    )
  if (real === undefined) throw new InvalidInput(`There is no file ${path} in the data folder.`)
  await access(real).catch((cause: unknown) => {
    throw new InvalidInput(`${path} can't be read by the worker.`, { cause })
  })
  return real
}
