import type { PartFile } from '../destination.ts'
import { PartsDamagedError } from '../errors.ts'
import { type ColumnKind, type WarehouseColumn, type WarehouseTable, literal, quote } from '../layout.ts'
import type { ReadFacts } from '../manifest.ts'
import { extraColumn } from '../../tables/table.ts'
import { checkRows, verifyParts } from '../parts.ts'
import { type DuckDb, longestRow, toPath } from './open.ts'

/**
 * The type of each kind of column; it never changes. Decimals have 22 digits before the point and 8 after it, so that
 * products (16 after it) and sums of amounts do not overflow. What does not fit is kept in `_extra`; nothing is rounded.
 */
export const types: Readonly<Record<ColumnKind, string>> = {
  text: 'VARCHAR',
  integer: 'BIGINT',
  position: 'INTEGER',
  decimal: 'DECIMAL(30,8)',
  boolean: 'BOOLEAN',
  date: 'DATE',
  timestamp: 'TIMESTAMP WITH TIME ZONE',
  json: 'JSON',
}

type Drift = ReadFacts['drift']

interface Reading {
  db: DuckDb
  table: WarehouseTable
  /** The parts of all tables. */
  parts: readonly PartFile[]
  /** Writes the rows of a query somewhere, and tells how many. */
  write: (query: string) => Promise<number>
  /** What can be selected from then. */
  written: string
  /** For messages. */
  where: string
  signal: AbortSignal | undefined
}

/** In bytes. By default, DuckDB would allocate 32 MB for each thread. */
export const usualBuffer = 2_000_000

/**
 * Reads the parts of a table into its columns. A decimal that its type does not hold exactly is NULL there, stands in `_extra`
 * under `_misfits`, and is counted.
 * @throws {PartsDamagedError}
 */
export async function readRows(reading: Reading): Promise<{ rows: number; drift: Drift }> {
  const { table, write, where } = reading
  const { name } = table.table
  const parts = reading.parts.filter((part) => part.table === name)
  await verifyParts(parts, reading)
  const size = Math.max(usualBuffer, longestRow(parts) + 1)
  const csv = toCsv({ table, files: parts, size })
  const rows = await write(toQuery(table, csv)).catch((error: unknown) => {
    throw toPartsError(error, name)
  })
  checkRows(parts, { table: name, rows, where })
  return { rows, drift: await findMisfits(reading, csv) }
}

/** The facts of a read with the values that only this destination cannot hold. */
export function withDrift(facts: ReadFacts, more: readonly Drift[]): ReadFacts {
  const drift = { ...facts.drift }
  for (const [path, { count, example }] of more.flatMap((one) => Object.entries(one)))
    drift[path] = { count: (drift[path]?.count ?? 0) + count, example: drift[path]?.example ?? example }
  return { ...facts, drift }
}

/** The cells of CSV files as texts. Each file is read by one thread, which takes rows as long as its buffers, or in parallel. */
export function toCsv(of: {
  table: WarehouseTable
  files: readonly { path: string; bytes: number }[]
  /** The size of a buffer, in bytes. */
  size: number
  hasHeader?: boolean
  /** Takes less memory for long files. DuckDB refuses those whose rows it cannot tell apart so. */
  parallel?: boolean
}): string {
  const { columns } = of.table.table
  const paths = of.files.flatMap(({ path, bytes }) => (bytes > 0 ? [toPath(path)] : []))
  if (paths.length === 0)
    return `(select ${columns.map(({ name }) => `null::VARCHAR as ${quote(name)}`).join(', ')} limit 0)`
  return `read_csv([${paths.join(', ')}], auto_detect = false, header = ${of.hasHeader ?? false}, delim = ',', quote = '"',
    escape = '"', new_line = '\\n', nullstr = '', allow_quoted_nulls = false, parallel = ${of.parallel ?? false},
    max_line_size = ${of.size}, buffer_size = ${of.size},
    columns = {${columns.map(({ name }) => `${literal(name)}: 'VARCHAR'`).join(', ')}})`
}

/** Replaces DuckDB's message, which quotes the row: its contents must not leak. */
export function toPartsError(error: unknown, table: string): unknown {
  const text = error instanceof Error ? error.message : ''
  if (!/^(Invalid Input|Conversion) Error/.test(text)) return error
  const [said] = text.split(/[\n"']/)
  return new PartsDamagedError(
    `The parts of ${table} are no rows of that table (${said}). Run the export again.`,
  )
}

const misfits = '_misfits'

/** The service may send more digits than the type has. Other kinds always fit: the encoder sees to it. */
const decimalsOf = ({ columns }: WarehouseTable): WarehouseColumn[] =>
  columns.filter(({ kind }) => kind === 'decimal')

const decimalOf = ({ name }: WarehouseColumn) => quote(`${name} (decimal)`)
const isMisfit = (column: WarehouseColumn) =>
  `${quote(column.cell)} is not null and ${decimalOf(column)} is null`

const withDecimals = (table: WarehouseTable, csv: string): string =>
  `(select *${decimalsOf(table)
    .map((column) => `, ${toDecimal(quote(column.cell))} as ${decimalOf(column)}`)
    .join('')} from ${csv})`

/** The typed columns of a table, from its cells. */
export function toQuery(table: WarehouseTable, csv: string): string {
  const values = table.columns.map((column) => `${toValue(table, column)} as ${quote(column.name)}`)
  return `select ${values.join(', ')} from ${withDecimals(table, csv)}`
}

function toValue(table: WarehouseTable, column: WarehouseColumn): string {
  const { name, kind, cell } = column
  if (name === extraColumn) return toExtra(table)
  if (kind === 'decimal') return decimalOf(column)
  return kind === 'text' ? quote(cell) : `cast(${quote(cell)} as ${types[kind]})`
}

/** DuckDB takes no more digits before an exponent, and drops the rest. */
const mostDigits = 38

/** NULL for a number that is too large, too fine or too long: DuckDB would round it. */
export function toDecimal(cell: string): string {
  // Casting text to a DECIMAL of more than 18 digits takes 9 to 16 µs, to a smaller one 0.1 µs (DuckDB 1.5.6).
  return `case when regexp_full_match(${cell}, '-?[0-9]{1,10}([.][0-9]{1,8}0*)?')
    then cast(cast(${cell} as DECIMAL(18,8)) as ${types.decimal})
    when length(${cell}) <= ${mostDigits} and ${decimalPlaces(cell)} <= 8 then try_cast(${cell} as ${types.decimal}) end`
}

/**
 * The decimal places of a number, which may have an exponent, without trailing zeros; too large an exponent yields too many
 * places.
 */
const decimalPlaces = (cell: string) =>
  `(length(regexp_extract(${cell}, '[.]([0-9]*?)0*([eE]|$)', 1)) - case when regexp_matches(${cell}, '[eE]')
    then coalesce(try_cast(regexp_extract(${cell}, '[eE](.*)$', 1) as integer), -999999) else 0 end)`

/**
 * `_extra` with the decimals that their columns do not hold in front, as texts; it is an object then, or NULL. Before a field of
 * the service's own by that name, there are none of them. DuckDB takes half a pair of surrogates for no JSON: a document with one
 * becomes a text that holds it.
 */
function toExtra(of: WarehouseTable): string {
  // Parquet has it also where the parts lack it.
  const sent = of.table.columns.some(({ name }) => name === extraColumn)
    ? quote(extraColumn)
    : 'null::varchar'
  const found = decimalsOf(of).map(
    (column) => `case when ${isMisfit(column)} then '"${column.name}":"' || ${quote(column.cell)} || '"' end`,
  )
  const isOwn = `starts_with(${sent}, '{"${misfits}":')`
  const text = `case when ${[isOwn, ...decimalsOf(of).map((column) => `(${isMisfit(column)})`)].join(' or ')}
    then '{"${misfits}":{' || concat_ws(',', ${['null', ...found].join(', ')}) || '}' || coalesce(',' || substr(${sent}, 2), '}')
    else ${sent} end`
  return `case when contains(${sent}, '\\ud') and not json_valid(${sent}) then to_json(${text})
    else cast(${text} as JSON) end`
}

/** Counts the decimals that their columns do not hold. */
async function findMisfits({ db, table, written }: Reading, csv: string): Promise<Drift> {
  const decimals = decimalsOf(table)
  if (decimals.length === 0) return {}
  // Without `_extra`, which may be excluded, only counting tells.
  if (table.columns.some(({ name }) => name === extraColumn)) {
    const [found] = await db.all(
      `select 1 from ${written} where contains(cast(${quote(extraColumn)} as VARCHAR), '${misfits}') limit 1`,
    )
    if (found === undefined) return {}
  }
  const [counts = {}] = await db.all(
    `select ${decimals
      .map((column) => `count(case when ${isMisfit(column)} then 1 end) as ${quote(column.name)}`)
      .join(', ')} from ${withDecimals(table, csv)}`,
  )
  return Object.fromEntries(
    table.table.columns.flatMap(({ name, source }) => {
      const count = Number(counts[name] ?? 0)
      return count === 0 ? [] : [[source, { count, example: 'a number' }]]
    }),
  )
}
