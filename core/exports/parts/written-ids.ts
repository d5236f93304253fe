import { parse } from 'csv-parse'
import { createHash } from 'node:crypto'
import { mkdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline, Readable } from 'node:stream'
import type { PartFile } from '../../destinations/destination.ts'
import { readParts } from '../../destinations/parts/read-parts.ts'
import type { IdSet } from '../../reading/options.ts'
import { createDiskSet } from '../../storage/disk-set.ts'

/** The set of what a read has written. */
export interface WrittenSet extends IdSet {
  /** Adds rejected records, one per line, and returns for each whether it was not yet written. */
  addLines(lines: readonly string[]): boolean[]
  close(): Promise<void>
}

/**
 * Builds, in a file of its own, the set of ids in a table's parts and of the checksums of rejected lines: a read
 * that falls back to page by page may have to distinguish millions of them.
 */
export async function openIdSet(options: {
  folder: string
  name: string
  parts: readonly PartFile[]
  rejected: readonly PartFile[]
  /** Converts an id of the service to the form in the parts: unchanged or hashed. */
  toWritten: (id: string) => string
}): Promise<WrittenSet> {
  const path = join(options.folder, `${options.name}.ids.db`)
  // Where several workers read, this one may have nothing of the read yet.
  await mkdir(options.folder, { recursive: true })
  await rm(path, { force: true })
  // Not durable: after a crash the next attempt rebuilds it from its own checkpoint.
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
  // Errors of earlier streams reach the reader through the last one, so the callback has nothing to do.
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
