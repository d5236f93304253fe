import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { currencyColumn } from '../../tables/totals.ts'
import { toCsv, usualBuffer } from '../duckdb/rows.ts'
import { memoryLimits, toPath, withDuckDb } from '../duckdb/open.ts'
import { literal, quote, textColumnOf, toWarehouseTable } from '../layout.ts'
import type { Manifest, PublishedTable } from '../manifest.ts'
import { type FileDestinationName, isFileDestination } from '../names.ts'
import { writePlain } from './csv.ts'

/** What reading an export may take: memory for DuckDB in MB, and the size of a buffer in bytes, which holds a whole row. */
interface Limits {
  memory: number
  size: number
}

/** In bytes. */
const longestRow = 128_000_000

/** Reads exports in little memory, and again with all there is if DuckDB asks for more, or a row is longer than its buffers. */
export async function readWithin<T>(memory: number, read: (limits: Limits) => Promise<T>): Promise<T> {
  const { most } = memoryLimits
  const attempt = (limits: Limits): Promise<T> =>
    read(limits).catch((error: unknown) => {
      if (limits.memory < most && /Out of Memory Error/.test(String(error)))
        return attempt({ ...limits, memory: most })
      // Of rows that are longer than its buffers, or that it cannot tell apart in parallel.
      if (limits.size < longestRow && /(Invalid Input|Not implemented) Error: .*CSV/.test(String(error)))
        return attempt({ memory: most, size: longestRow })
      throw error
    })
  return await attempt({ memory, size: usualBuffer })
}

/** What DuckDB can select from to have the cells of an export's table as texts, as the service wrote them, in any format. */
export async function selectCells(of: {
  folder: string
  manifest: Manifest
  table: PublishedTable
  /** Where a table for Excel is rewritten as ours; it takes its name from there. */
  plain?: string
  size: Limits['size']
}): Promise<string> {
  const { folder, manifest, table, plain = '', size } = of
  const files = table.files.map((file) => ({ ...file, path: join(folder, file.path) }))
  const format = manifest.destination
  if (format !== 'csv' && isFileDestination(format)) return readers[format](table, files)
  if (manifest.dialect?.formulaGuard === true)
    for (const file of files) {
      if (!existsSync(plain)) await writePlain(table, file.path, plain)
      file.path = plain
    }
  return toCsv({
    table: toWarehouseTable(table),
    files,
    size,
    hasHeader: true,
    parallel: size === usualBuffer,
  })
}

/** How to read each format but CSV. */
const readers: Readonly<Record<Exclude<FileDestinationName, 'csv'>, typeof fromParquet>> = {
  parquet: fromParquet,
}

/** The cells of Parquet files, but for the zeros at the end of decimals. */
function fromParquet({ columns }: PublishedTable, files: readonly { path: string }[]): string {
  const cells = columns.map((column) => {
    const name = quote(column.name)
    const text = `cast(${name} as varchar)`
    const cell =
      column.kind === 'decimal'
        ? `case when ${name} is null then ${misfitOf(column)} else regexp_replace(${text}, '[.]?0+$', '') end`
        : column.name === '_extra'
          ? `nullif(regexp_replace(${extra}, '^[{]"_misfits":[{][^}]*[}],?', '{'), '{}')`
          : column.kind === 'timestamp'
            ? quote(textColumnOf(column))
            : text
    return `${cell} as ${name}`
  })
  return `(select ${cells.join(', ')} from read_parquet([${files.map(({ path }) => toPath(path)).join(', ')}]))`
}

/** `_extra` as it was sent: a document that DuckDB does not read as JSON is a text there. */
const extra = `case when json_type(_extra) = 'VARCHAR' then json_extract_string(_extra, '$') else cast(_extra as varchar) end`

/**
 * Reads the tables of an export in Parquet as if they were CSV, in no order. Only keys, times, currencies and decimals are read;
 * other cells are empty.
 */
export async function withParquet<T>(
  of: { folder: string; manifest: Manifest },
  work: (rowsOf: (table: PublishedTable) => AsyncIterable<string[]>) => Promise<T>,
): Promise<T> {
  // Little of the memory is used, unless `_extra` is long.
  return await withDuckDb({ path: undefined, memory: memoryLimits.most, beside: undefined }, (db) =>
    work(async function* (table) {
      const cells = table.columns.map(({ name, kind }) => {
        const isRead = kind === 'decimal' || [...table.key, currencyColumn, 'created'].includes(name)
        return isRead ? `'=' || coalesce(${quote(name)}, '')` : "'='"
      })
      const from = await selectCells({ ...of, table, size: usualBuffer })
      // A cell comes behind a sign, because DuckDB's client drops a byte order mark that a text begins with.
      for await (const row of db.stream(`select ${cells.join(', ')} from ${from}`))
        yield row.map((cell) => cell!.slice(1))
    }),
  )
}

/** The text of a decimal that its column does not hold. */
const misfitOf = ({ name }: { name: string }) =>
  `nullif(regexp_extract(${extra}, ${literal(`^[{]"_misfits":[{]([^}]*,)?"${name}":"([^"]*)"`)}, 2), '')`

/** What is compared of a cell: of a decimal its number, however it is written. */
export const toValue = ({ kind }: { kind: string }, cell: string): string =>
  kind === 'decimal' ? toNumber(cell) : cell

/** The digits of a number without zeros at their ends, and the power of ten. */
const toNumber = (cell: string): string =>
  `list_transform([regexp_extract(${cell}, '(-?)([0-9]+)[.]?([0-9]*)[eE]?(.*)', ['sign', 'whole', 'fraction', 'power'])],
    lambda d: case when trim(d.whole || d.fraction, '0') = '' then '0'
      else d.sign || trim(d.whole || d.fraction, '0') || 'e' || (coalesce(try_cast(d.power as integer), 0)
        + length(d.whole) - length(rtrim(d.whole || d.fraction, '0'))) end)[1]`
