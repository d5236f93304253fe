import { parse } from 'csv-parse'
import { createHash } from 'node:crypto'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pipeline, Readable } from 'node:stream'
import type { PartFile } from '../../destinations/destination.ts'
import { readParts } from '../../destinations/read-parts.ts'
import type { IdSet } from '../../reading/options.ts'

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
  const database = new DatabaseSync(path)
  // A crash throws the set away: the next attempt makes it anew from its own checkpoint.
  database.exec(
    'pragma journal_mode = off; pragma synchronous = off; create table ids (id text primary key) without rowid',
  )
  const insert = database.prepare('insert or ignore into ids values (?)')
  const isNew = (id: string) => insert.run(id).changes === 1
  database.exec('begin')
  for await (const id of idsOf(options.parts)) isNew(id)
  const addLine = (line: string) => isNew(`rejected ${createHash('sha256').update(line).digest('hex')}`)
  for await (const line of linesOf(options.rejected)) addLine(line)
  return {
    addLines: (lines) => lines.map(addLine),
    add: (ids) => ids.map((id) => isNew(options.toWritten(id))),
    async close() {
      database.close()
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
