import { createReadStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import type { Destination, Publication } from '../destination.ts'
import { toDuckDbError, type DuckDb, memoryFor, toPath, withDuckDb } from '../duckdb/open.ts'
import { readRows, withDrift } from '../duckdb/rows.ts'
import { toWarehouseTable, type WarehouseTable, literal } from '../layout.ts'
import type { PublishedFile, ReadFacts } from '../manifest.ts'
import { extraColumn } from '../../tables/table.ts'
import { toPublishedTable } from '../to-manifest.ts'
import { checkTables, sumBytes } from '../parts.ts'
import { stageNotes } from './csv.ts'
import { createFileDestination, type StagedFiles } from './publish.ts'

/**
 * Destination for Parquet files, in a root of their own beside the CSV files: a run may be published as
 * both, and `latest` must not alternate between them.
 */
export const createParquetDestination = (): Destination =>
  createFileDestination({ name: 'parquet', below: 'parquet', stage: stageParquet })

/** Writes an export's files into a folder and counts what arrived. */
async function stageParquet(publication: Publication, folder: string): Promise<StagedFiles> {
  checkTables(publication)
  const { parts, signal, facts } = publication
  // Inside the folder, so that it is removed with it if this process dies.
  const opening = {
    path: undefined,
    memory: memoryFor(parts),
    beside: join(folder, '.beside'),
    signal,
  }
  try {
    return await withDuckDb(opening, async (db) => {
      const tables = []
      const drift = []
      for (const table of publication.tables) {
        const staged = await stageTable({ db, publication, folder }, withExtra(toWarehouseTable(table)))
        drift.push(staged.drift)
        tables.push(toPublishedTable(publication, table, { rows: staged.file.rows, files: [staged.file] }))
      }
      return { tables, ...(await stageNotes(publication, folder)), facts: withDrift(facts, drift) }
    })
  } catch (error) {
    signal?.throwIfAborted()
    throw toDuckDbError(error, { path: folder })
  }
}

/** With `_extra` for what its decimal columns do not hold: `--exclude` leaves out what the service has there. */
function withExtra({ table, columns }: WarehouseTable): WarehouseTable {
  if (columns.at(-1)?.name === extraColumn || columns.every(({ kind }) => kind !== 'decimal'))
    return { table, columns }
  return { table, columns: [...columns, { name: extraColumn, kind: 'json', cell: extraColumn, note: '' }] }
}

/**
 * A thread holds all columns of a row group until it is full: with DuckDB's default of 122,880 rows whatever their size,
 * 1,000,000 customers do not fit in its memory limit.
 */
const rowGroup = "row_group_size 30000, row_group_size_bytes '16MB'"

async function stageTable(
  of: { db: DuckDb; publication: Publication; folder: string },
  table: WarehouseTable,
): Promise<{ file: PublishedFile; drift: ReadFacts['drift'] }> {
  const { db, publication, folder } = of
  const path = `${table.table.name}.parquet`
  const file = join(folder, path)
  const { rows, drift } = await readRows({
    db,
    table,
    parts: publication.parts,
    write: (query) =>
      db.run(`copy (${query}) to ${literal(file)} (format parquet, compression zstd, ${rowGroup})`),
    written: `read_parquet(${toPath(file)})`,
    where: path,
    signal: publication.signal,
  })
  await using written = await open(file, 'r+')
  await written.sync()
  return { file: { path, rows, ...(await sumBytes(createReadStream(file))) }, drift }
}
