import type { DuckDBConnection } from '@duckdb/node-api'
import type { PartFile } from '../destination.ts'
import { PartsDamagedError } from '../errors.ts'
import type { WarehouseColumn, WarehouseTable } from '../layout.ts'
import { literal, quote } from '../sql.ts'
import { verifyParts } from '../parts/read-parts.ts'
import { leastTypes, leastTypesQuery, type ColumnTypes } from '../warehouse/column-types.ts'
import { duckDbTypes as typeSystem, toValues } from './column-types.ts'
import { readRows } from './read-rows.ts'

/**
 * The maximum row sizes to try, in order, in bytes: DuckDB's own 2 MB first, more only if a row needs it. By
 * default DuckDB would allocate buffers of 16 times that size; with 4 times, 1,000,000 customers in several files do not
 * fit in 128 MB with two threads.
 */
const sizes = [
  { row: 2_000_000, buffer: 4_000_000, parallel: true },
  { row: 32_000_000, buffer: 64_000_000, parallel: true },
  // With several threads, DuckDB rejects rows longer than a piece of its buffers.
  { row: 128_000_000, buffer: 128_000_000, parallel: false },
]

interface Reading {
  connection: DuckDBConnection
  table: WarehouseTable
  parts: readonly PartFile[]
  /** The current types of the columns in the warehouse. */
  has: ColumnTypes
  signal: AbortSignal | undefined
  take: (query: string) => Promise<unknown>
}

/**
 * Passes the rows of parts, as a query with a table's columns, to a statement that consumes them and fails at
 * a cell that its column's type does not hold exactly. The first type of a kind nearly always does; where it
 * does not, a pass over the cells decides the types, and the statement is run again.
 * @returns the types chosen
 * @throws {PartsDamagedError}
 */
export async function readExactly(reading: Reading): Promise<ColumnTypes> {
  const { table, parts, has } = reading
  await verifyParts(parts, reading)
  const paths = parts.map(({ path }) => path)
  for (const size of sizes) {
    const rows = toRows(table, paths, size)
    try {
      return await takeRows(reading, rows)
    } catch (error) {
      // A row that is longer than a buffer can look like any error: DuckDB reads on in the middle of a cell.
      if ((isTooLong(error) || isMisfit(error)) && size !== sizes.at(-1)) continue
      throw toPartsError(error, table)
    }
  }
  return has
}

async function takeRows(reading: Reading, rows: string): Promise<ColumnTypes> {
  const { table, has } = reading
  const widened = table.columns.filter(({ name, kind }) => {
    const type = has.get(name)
    return type !== undefined && type !== text && type !== typeSystem.types[kind][0]
  })
  try {
    return await takeAs({ ...reading, rows, searched: widened })
  } catch (error) {
    if (!isMisfit(error)) throw error
    return await takeAs({ ...reading, rows, searched: table.columns })
  }
}

/** Consumes rows, with the first type of its kind for each column that is not searched. */
async function takeAs(
  reading: Reading & { rows: string; searched: readonly WarehouseColumn[] },
): Promise<ColumnTypes> {
  const { connection, table, has, rows, searched, take } = reading
  const query = leastTypesQuery({ typeSystem, columns: searched, rows })
  const [found] = query === undefined ? [] : await readRows(connection, query)
  const least = leastTypes({ typeSystem, columns: table.columns, found })
  // A column that is already text takes every cell unchanged.
  const types = new Map([...least].map(([name, type]) => [name, has.get(name) === text ? text : type]))
  await take(`select ${toValues(table, types)} from ${rows}`)
  return types
}

const text = typeSystem.types.text[0]

const textOf = (error: unknown) => (error instanceof Error ? error.message : '')

const isTooLong = (error: unknown) => /Maximum line size|Parallel CSV Reader/i.test(textOf(error))

/** Whether the error means a malformed CSV row, or a cell that is not exactly of its column's type. */
const isMisfit = (error: unknown) =>
  !isTooLong(error) && /CSV Error|^(Conversion|Invalid Input) Error/i.test(textOf(error))

/** Replaces DuckDB's message, which quotes the row: its contents must not leak. */
function toPartsError(error: unknown, { table }: WarehouseTable): unknown {
  if (!isTooLong(error) && !isMisfit(error)) return error
  const [said] = textOf(error).split(/[\n"']/)
  return new PartsDamagedError(
    `The parts of ${table.name} are no rows of that table (${said}). Run the export again.`,
  )
}

function toRows({ table }: WarehouseTable, paths: readonly string[], size: (typeof sizes)[number]): string {
  if (paths.length === 0)
    return `(select ${table.columns.map(({ name }) => `null::VARCHAR as ${quote(name)}`).join(', ')} limit 0)`
  const columns = table.columns.map(({ name }) => `${literal(name)}: 'VARCHAR'`)
  return `read_csv([${paths.map(literal).join(', ')}], header = false, auto_detect = false, delim = ',',
    quote = '"', escape = '"', new_line = '\\n', nullstr = '', allow_quoted_nulls = false,
    max_line_size = ${size.row}, buffer_size = ${size.buffer}, parallel = ${size.parallel}, columns = {${columns.join(', ')}})`
}
