import { parse } from 'csv-parse'
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import type { PartFile } from '../../destinations/destination.ts'
import { readParts } from '../../destinations/parts/read-parts.ts'
import type { IdSet } from '../../reading/options.ts'
import { createDiskSet } from '../../storage/disk-set.ts'

/** What a read has written. */
export interface WrittenSet extends IdSet {
  /** Which lines of what is no record were not written yet; they are from here on. */
  addLines(lines: readonly string[]): boolean[]
  close(): Promise<void>
}

/**
 * The ids that the parts of a table hold, and a sum of each rejected line, in a file of their own: a read that falls back to page by page may have
 * to tell millions of them apart.
 */
export async function openIdSet(options: {
  folder: string
  name: string
  parts: readonly PartFile[]
  rejected: readonly PartFile[]
  /** How the parts write an id of the service: as it is, or hashed. */
  toWritten: (id: string) => string
}): Promise<WrittenSet> {
  const path = join(options.folder, `${options.name}.ids.db`)
  await rm(path, { force: true })
  // After a crash the next attempt builds it again, from its own checkpoint.
  const set = createDiskSet({ path })
  for await (const id of idsOf(options.parts)) set.add('ids', id)
  const addLine = (line: string) => set.add('rejected', createHash('sha256').update(line).digest('hex'))
  for await (const line of linesOf(options.rejected)) addLine(line)
  return {
    addLines: (lines) => lines.map(addLine),
    add: (ids) => ids.map((id) => set.add('ids', options.toWritten(id))),
    async close() {
      set.close()
      await rm(path, { force: true })
    },
  }
}

/** The first cell of each row is the record's id. */
async function* idsOf(parts: readonly PartFile[]): AsyncIterable<string> {
  // The last stream fails with whatever fails before it, so nothing is left to do when the line ends.
  const rows = pipeline(Readable.from(readParts(parts)), parse(), () => {}) as AsyncIterable<string[]>
  for await (const row of rows) if (row[0] !== undefined) yield row[0]
}

async function* linesOf(parts: readonly PartFile[]): AsyncIterable<string> {
  const decoder = new TextDecoder()
  let rest = ''
  for await (const chunk of readParts(parts)) {
    const lines = (rest + decoder.decode(chunk, { stream: true })).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}
