import type { DuckDBConnection } from '@duckdb/node-api'
import { createHash } from 'node:crypto'
import { open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { checkRows, checkTables } from '../parts/check-parts.ts'
import { stageNotes } from '../csv/stage-notes.ts'
import type { Publication } from '../destination.ts'
import { collectGarbage } from '../duckdb/collect-garbage.ts'
import { toDuckDbError } from '../duckdb/duckdb-errors.ts'
import { type MemoryLimit, openDuckDb, withEnoughMemory } from '../duckdb/open-duckdb.ts'
import { readRows } from '../duckdb/read-rows.ts'
import { readExactly } from '../duckdb/read-exactly.ts'
import type { StagedFiles } from '../file-format.ts'
import type { PublishedFile } from '../manifest/manifest.ts'
import { toWarehouseTable, type WarehouseTable } from '../layout.ts'
import { literal } from '../sql.ts'
import { sumOf } from '../parts/read-parts.ts'

interface Stage {
  publication: Publication
  connection: DuckDBConnection
  /** The folder for the files. */
  folder: string
}

/** Writes an export's files into a folder and counts what arrived. */
export async function stageParquet(publication: Publication, folder: string): Promise<StagedFiles> {
  checkTables(publication)
  collectGarbage()
  try {
    return await withEnoughMemory('128MB', (limit) => stageTables({ publication, folder }, limit))
  } catch (error) {
    publication.signal?.throwIfAborted()
    throw toDuckDbError(error, { path: folder })
  }
}

async function stageTables(
  { publication, folder }: { publication: Publication; folder: string },
  memoryLimit: MemoryLimit,
): Promise<StagedFiles> {
  const { signal } = publication
  // Inside the folder, so that it is removed with it if this process dies.
  const beside = join(folder, '.beside')
  const database = await openDuckDb({ path: undefined, memoryLimit })
  const { connection } = database
  const interrupt = () => connection.interrupt()
  signal?.addEventListener('abort', interrupt)
  try {
    await database.spillTo(join(beside, 'spill'))
    const tables = []
    for (const table of publication.tables) {
      const file = await stageTable({ publication, connection, folder }, toWarehouseTable(table))
      tables.push({
        ...table,
        key: [...table.key],
        columns: [...table.columns],
        rows: file.rows,
        files: [file],
        parts: sumOf(publication.parts, table.name),
      })
    }
    return { tables, ...(await stageNotes({ publication, folder })) }
  } finally {
    signal?.removeEventListener('abort', interrupt)
    database.close()
    await rm(beside, { recursive: true, force: true })
  }
}

/**
 * A thread holds all columns of a row group until it is full: with DuckDB's default of 122,880 rows whatever their size,
 * 1,000,000 customers do not fit in its memory limit.
 */
const rowGroup = "row_group_size 30000, row_group_size_bytes '16MB'"

async function stageTable(stage: Stage, table: WarehouseTable): Promise<PublishedFile> {
  const { publication, connection, folder } = stage
  const { name } = table.table
  const parts = publication.parts.filter((part) => part.table === name)
  const path = `${name}.parquet`
  const file = join(folder, path)
  await readExactly({
    connection,
    table,
    parts,
    has: new Map(),
    signal: publication.signal,
    take: (query) =>
      connection.run(`copy (${query}) to ${literal(file)} (format parquet, compression zstd, ${rowGroup})`),
  })
  const [counted] = await readRows(connection, `select count(*) as rows from read_parquet(${literal(file)})`)
  const rows = Number(counted?.['rows'])
  checkRows(parts, { table: name, rows, where: path })
  return { path, rows, ...(await sumFile(file)) }
}

async function sumFile(path: string): Promise<Pick<PublishedFile, 'bytes' | 'sha256'>> {
  const hash = createHash('sha256')
  const file = await open(path, 'r+')
  try {
    await file.sync()
    let bytes = 0
    for await (const chunk of file.createReadStream({ autoClose: false }) as AsyncIterable<Buffer>) {
      bytes += chunk.length
      hash.update(chunk)
    }
    return { bytes, sha256: hash.digest('hex') }
  } finally {
    await file.close()
  }
}
