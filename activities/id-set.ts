import { parse } from 'csv-parse'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { pipeline, Readable } from 'node:stream'
import type { PartFile } from '../destinations/destination.ts'
import { readParts } from '../destinations/read-parts.ts'
import type { IdSet } from '../reading/options.ts'

/**
 * The ids that the parts of a table hold, in a file of their own: a read that falls back to page by page may have
 * to tell millions of them apart.
 */
export async function openIdSet(options: {
  folder: string
  name: string
  parts: readonly PartFile[]
  /** How the parts write an id of the service: as it is, or hashed. */
  toWritten: (id: string) => string
}): Promise<IdSet & { close(): Promise<void> }> {
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
  return {
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
