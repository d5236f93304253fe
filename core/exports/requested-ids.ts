import { createHash } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { PartsDamagedError } from '../destinations/errors.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { replaceFile } from '../storage/durable.ts'
import { toFileName } from '../storage/file-name.ts'
import type { AskedIds } from './plan.ts'

interface FetchFolder {
  dataDir: string
  shared: SharedFolder
  run: string
}

/** Its name is what it holds: an attempt that finds other ids never changes those of the plan that counts. */
const fileOf = ({ dataDir, run }: FetchFolder, sha256: string) =>
  join(dataDir, 'parts', toFileName(run), `ids-${sha256.slice(0, 16)}.txt`)

const sumOf = (text: string) => createHash('sha256').update(text).digest('hex')

/** The source of a fetch's ids. */
export interface IdSource {
  ids(): AsyncIterable<string> | Iterable<string>
  /** The number of rows without an id in the part of the file read so far. */
  empty: number
}

/** Stores the ids of a fetch, one per line, for as long as its parts: the file they came from may change or be deleted. */
export async function keepAskedIds({
  source,
  ...place
}: FetchFolder & { source: IdSource }): Promise<AskedIds> {
  const ids = new Set<string>()
  let repeated = 0
  for await (const id of source.ids()) {
    if (ids.has(id)) repeated++
    ids.add(id)
  }
  const text = [...ids].map((id) => `${id}\n`).join('')
  const sha256 = sumOf(text)
  const file = fileOf(place, sha256)
  await replaceFile(file, text)
  await place.shared.keep(file)
  return { asked: ids.size, sha256, notes: notesOn({ repeated, empty: source.empty }) }
}

function notesOn({ repeated, empty }: { repeated: number; empty: number }): string[] {
  const notes: string[] = []
  if (repeated > 0)
    notes.push(
      `${repeated === 1 ? '1 id was' : `${repeated} ids were`} given more than once; each is requested once.`,
    )
  if (empty > 0)
    notes.push(`${empty === 1 ? '1 row without an id was' : `${empty} rows without an id were`} skipped.`)
  return notes
}

/** @throws {PartsDamagedError} they are not those that were stored */
export async function readAskedIds({
  asked,
  ...place
}: FetchFolder & { asked: AskedIds }): Promise<string[]> {
  const path = fileOf(place, asked.sha256)
  await place.shared.fetch(path)
  const text = await readFile(path, 'utf8')
  if (sumOf(text) !== asked.sha256)
    throw new PartsDamagedError(`${path} no longer holds the ids of this fetch. Run it again.`)
  return text.split('\n').slice(0, -1)
}
