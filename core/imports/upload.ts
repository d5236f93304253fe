import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { constants, copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { syncPath } from '../storage/durable.ts'
import { refuseLarge } from './file-size.ts'
import type { ImportKindName } from './kinds.ts'
import type { Mapping } from './mapping/mapping.ts'

/** What an import reads, wherever it lies; the look-up files of the mapping included. */
export interface InputFiles {
  file: string
  lines?: string | undefined
  /** With absolute paths of its look-up files. */
  mapping: Mapping
}

/** The same, in a folder of their own: names relative to it. */
export interface CopiedInput {
  file: string
  lines?: string
  mapping: string
  /** Every file, in a fixed order. */
  all: string[]
}

/**
 * Copies all that an import reads durably into one folder, where nobody changes it under way. Each file keeps its name, which
 * messages show, and gets a folder of its own: no name that somebody chose decides where anything is written.
 */
export async function copyInput({ files, to }: { files: InputFiles; to: string }): Promise<CopiedInput> {
  const copy = async (path: string, folder: string, sort: 'table' | 'lookup' = 'table') => {
    await refuseLarge(path, sort)
    const name = join(folder, basename(path))
    await mkdir(join(to, folder), { recursive: true })
    await copyFile(path, join(to, name), constants.COPYFILE_EXCL)
    return name
  }
  const file = await copy(files.file, 'file')
  const lookups: [string, string][] = []
  for (const [field, path] of Object.entries(files.mapping.lookups ?? {}))
    lookups.push([field, await copy(path, join('lookups', String(lookups.length + 1)), 'lookup')])
  const { lookups: _, ...said } = files.mapping
  const names = { file, ...(files.lines !== undefined && { lines: await copy(files.lines, 'lines') }) }
  const byField = Object.fromEntries(lookups)
  const mapping = { ...said, ...(lookups.length > 0 && { lookups: byField }) }
  await writeFile(join(to, mappingFile), JSON.stringify(mapping), { flag: 'wx' })
  const copied = toCopied(names, byField)
  // The plan, which is durable, must not speak of a copy that a power failure cuts short.
  const folders = copied.all.flatMap((name) => [dirname(name), dirname(dirname(name))])
  for (const name of new Set([...copied.all, ...folders, '.'])) await syncPath(join(to, name))
  return copied
}

const mappingFile = 'mapping.json'

/** What `copyInput` has put into a folder. */
export async function copiedIn({
  folder,
  ...names
}: {
  folder: string
  file: string
  lines?: string
}): Promise<CopiedInput> {
  const { lookups } = JSON.parse(await readFile(join(folder, mappingFile), 'utf8')) as Mapping
  return toCopied(names, lookups ?? {})
}

function toCopied(names: { file: string; lines?: string }, lookups: Record<string, string>): CopiedInput {
  const { file, lines } = names
  const all = [file, mappingFile, ...Object.values(lookups), ...(lines === undefined ? [] : [lines])]
  return { ...names, mapping: mappingFile, all }
}

/**
 * The same for the same rows read the same way, and for nothing else: an import of it that has not ended goes on
 * instead of beginning anew.
 */
export async function fingerprintOf({
  folder,
  copied,
  ...what
}: {
  folder: string
  copied: CopiedInput
  kind: ImportKindName
  workspace: string
  mode: 'live' | 'test'
  columns: readonly string[] | undefined
  sendAgain: readonly number[]
}): Promise<string> {
  const hash = createHash('sha256').update(JSON.stringify(what, Object.keys(what).toSorted()))
  for (const name of copied.all) {
    hash.update(`\n${name}\n`)
    for await (const chunk of createReadStream(join(folder, name)) as AsyncIterable<Buffer>)
      hash.update(chunk)
  }
  return hash.digest('hex').slice(0, 32)
}
