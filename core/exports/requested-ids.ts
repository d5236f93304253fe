import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { replaceInPieces } from '../storage/durable.ts'
import { toFileName } from '../storage/file-name.ts'
import { createDiskSet } from '../storage/disk-set.ts'
import type { AskedIds } from './plan.ts'

/** The distinct ids of a fetch, one per line, stored beside its parts. */
const fileOf = ({ dataDir, run }: { dataDir: string; run: string }) =>
  join(dataDir, 'parts', toFileName(run), 'ids.txt')

const batchCharacters = 1 << 16

/** The source of a fetch's ids. */
export interface IdSource {
  ids(): AsyncIterable<string> | Iterable<string>
  /** The number of rows without an id in the part of the file read so far. */
  empty: number
}

/** Stores the ids of a fetch for as long as its parts: the file they came from may change or be deleted. */
export async function keepAskedIds(of: {
  dataDir: string
  run: string
  source: IdSource
}): Promise<AskedIds> {
  const hash = createHash('sha256')
  const keys = createDiskSet({ cacheMiB: 64 })
  let asked = 0
  let repeated = 0
  try {
    await replaceInPieces(fileOf(of), async (file) => {
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
  } finally {
    keys.close()
  }
  return { asked, sha256: hash.digest('hex'), notes: notesOn({ repeated, empty: of.source.empty }) }
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

/** Reads the stored ids, skipping the first `skip`. */
export async function* readAskedIds(of: {
  dataDir: string
  run: string
  skip: number
}): AsyncGenerator<string> {
  const lines = createInterface({ input: createReadStream(fileOf(of)) })
  let left = of.skip
  for await (const id of lines) if (left-- <= 0) yield id
}
