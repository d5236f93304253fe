import { createHash, randomUUID } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { PartsDamagedError } from '../destinations/errors.ts'
import { replaceInPieces, syncPath } from '../storage/durable.ts'
import { toFileName } from '../storage/file-name.ts'
import { createDiskSet } from '../storage/disk-set.ts'
import type { SharedFolder } from '../storage/cached.ts'
import type { AskedIds } from './plan.ts'

const folderOf = ({ dataDir, run }: { dataDir: string; run: string }) =>
  join(dataDir, 'parts', toFileName(run))

const batchCharacters = 1 << 16

/** The source of a fetch's ids. */
export interface IdSource {
  ids(): AsyncIterable<string> | Iterable<string>
  /** The number of rows without an id in the part of the file read so far. */
  empty: number
}

/**
 * Stores the ids of a fetch, one per line, for as long as its parts: the file they came from may change or be deleted.
 * Its name is what it holds: an attempt that finds other ids never changes those of the plan that counts.
 */
export async function keepAskedIds(of: {
  dataDir: string
  shared: SharedFolder
  run: string
  source: IdSource
}): Promise<AskedIds> {
  const hash = createHash('sha256')
  const keys = createDiskSet({ cacheMiB: 64 })
  const folder = folderOf(of)
  const draft = join(folder, `ids.${randomUUID().slice(0, 8)}.new`)
  let asked = 0
  let repeated = 0
  try {
    await replaceInPieces(draft, async (file) => {
      let pending = ''
      const flush = async () => {
        hash.update(pending)
        await file.writeFile(pending)
        pending = ''
      }
      for await (const id of of.source.ids()) {
        if (!keys.add('', id)) {
          repeated++
          continue
        }
        asked++
        pending += `${id}\n`
        if (pending.length >= batchCharacters) await flush()
      }
      await flush()
    })
    const sha256 = hash.digest('hex')
    const file = `ids-${sha256.slice(0, 16)}.txt`
    await rename(draft, join(folder, file))
    await syncPath(folder)
    await of.shared.keep(join(folder, file))
    const notes = notesOn({ repeated, empty: of.source.empty })
    return { asked, sha256, file, notes }
  } finally {
    keys.close()
    await rm(draft, { force: true })
  }
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

/**
 * Reads the stored ids, skipping the first `skip`.
 *
 * @throws {PartsDamagedError} at their end: they are not those that were stored
 */
export async function* readAskedIds(of: {
  dataDir: string
  shared: SharedFolder
  run: string
  asked: AskedIds
  skip: number
}): AsyncGenerator<string> {
  const path = join(folderOf(of), of.asked.file ?? 'ids.txt')
  await of.shared.fetch(path)
  const lines = createInterface({ input: createReadStream(path) })
  const hash = createHash('sha256')
  let left = of.skip
  for await (const id of lines) {
    hash.update(`${id}\n`)
    if (left-- <= 0) yield id
  }
  // Who reads them takes their end for the end of what was asked.
  if (hash.digest('hex') !== of.asked.sha256)
    throw new PartsDamagedError(`${path} no longer holds the ids of this fetch. Run it again.`)
}
