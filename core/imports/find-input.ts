import type { InputFiles } from './upload.ts'
import { conventionsIn, type Mapping, readMapping, toMapping } from './mapping/mapping.ts'
import type { AskedImport } from './input.ts'
import { insideFolder } from '../runs/inside-folder.ts'

/** The files that an input names, each of them in the data folder, and the mapping that they are read by. */
export async function findInput({
  asked,
  dataDir,
}: {
  asked: AskedImport
  dataDir: string
}): Promise<InputFiles> {
  const inside = (path: string) => insideFolder({ dataDir, path, command: 'import' })
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
