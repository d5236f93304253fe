import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { isSystemError } from '../storage/system-errors.ts'
import { UnreadableFileError } from './errors.ts'
import type { Mapping } from './mapping/mapping.ts'

/**
 * Where the data folder has the files of imports. Each input has a folder that is named after its hash, so it never
 * changes, any number of runs refer to it, and nothing copies it again.
 */
export const inputsFolder = 'imports/input'
export const mappingName = 'mapping.json'

/** The files of an input; their paths are relative to the data folder. */
export interface StoredInput {
  file: string
  mapping: string
}

/** Every file of an input, in a fixed order. */
export const namesOf = (file: string, { lookups = {} }: Mapping) => [
  file,
  mappingName,
  ...Object.values(lookups),
]

export async function hashOf(folder: string, names: readonly string[]): Promise<string> {
  const hash = createHash('sha256')
  for (const name of names) {
    hash.update(`\n${name}\n`)
    for await (const chunk of createReadStream(join(folder, name)) as AsyncIterable<Buffer>)
      hash.update(chunk)
  }
  return hash.digest('hex')
}

/** The hash and the folder of a file that is part of a stored input; undefined for any other file. */
export function storedPlace(file: string): { hash: string; folder: string } | undefined {
  const [, folder, hash] = /^(imports\/input\/([0-9a-f]{64}))\/./.exec(file) ?? []
  return folder === undefined || hash === undefined ? undefined : { folder, hash }
}

/** The paths of all files of a stored input, relative to the data folder. The mapping must be there. */
export async function filesOf({
  dataDir,
  file,
  mapping,
}: StoredInput & { dataDir: string }): Promise<string[]> {
  const folder = posix.dirname(mapping)
  const stored = JSON.parse(await readFile(join(dataDir, mapping), 'utf8')) as Mapping
  return namesOf(posix.relative(folder, file), stored).map((name) => posix.join(folder, name))
}

export async function isIntact(input: StoredInput & { dataDir: string }): Promise<boolean> {
  const place = storedPlace(input.file)
  if (place === undefined) return false
  try {
    const names = (await filesOf(input)).map((path) => posix.relative(place.folder, path))
    return (await hashOf(join(input.dataDir, place.folder), names)) === place.hash
  } catch (error) {
    if (error instanceof SyntaxError || isSystemError(error, 'ENOENT')) return false
    throw error
  }
}

/** @throws {UnreadableFileError} the input no longer has the content that its name says */
export async function refuseDamaged(input: StoredInput & { dataDir: string }): Promise<void> {
  if (await isIntact(input)) return
  throw new UnreadableFileError(
    `The stored copy of the file, ${join(input.dataDir, input.file)}, is damaged: it was truncated or changed after the ` +
      'run started. Nothing was sent. Start the same import again with the original file.',
  )
}
