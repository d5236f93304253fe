import type { DuckDBConnection } from '@duckdb/node-api'
import type { PartFile } from '../destination.ts'
import { PartsDamagedError } from '../errors.ts'
import type { WarehouseTable } from '../warehouse/layout.ts'
import { literal, quote } from '../warehouse/sql.ts'
import { leastTypes, leastTypesQuery, type ColumnTypes } from '../warehouse/column-types.ts'
import { duckDbTypes as typeSystem, toValues } from './column-types.ts'
import { reachableParts } from './reachable-parts.ts'
import { readRows } from './read-rows.ts'

/**
 * Longest rows that are tried, one after the other: DuckDB's own 2 MB, and more only where a row needs it. By itself
 * it would take buffers of 16 times as much.
 */
const sizes = [
  { row: 2_000_000, buffer: 32_000_000, parallel: true, memory: undefined },
  { row: 32_000_000, buffer: 64_000_000, parallel: true, memory: '512MB' },
  // On several threads it gives up on a row that is longer than a piece of its buffers.
  { row: 128_000_000, buffer: 128_000_000, parallel: false, memory: '1GB' },
]

/**
 * Hands the rows of parts, as a query with a table's columns, to a statement that takes them all. One pass over the
 * cells decides the types of the columns, so that the second converts each of them exactly.
 * @returns the types that were taken
 * @throws {PartsDamagedError}
 */
export async function readExactly(options: {
  connection: DuckDBConnection
  table: WarehouseTable
  parts: readonly PartFile[]
  /** The types that the columns have in the warehouse. */
  has: ColumnTypes
  /** For what DuckDB can't read in its place. */
  folder: string
  take: (query: string) => Promise<unknown>
}): Promise<ColumnTypes> {
  const { connection, table, parts, has, folder, take } = options
  const paths = await reachableParts(parts, folder)
  for (const size of sizes) {
    const rows = toRows(table, paths, size)
    if (size.memory !== undefined) await connection.run(`set memory_limit = '${size.memory}'`)
    try {
      const { columns } = table
      const query = leastTypesQuery({ typeSystem, columns, rows })
      const [found] = query === undefined ? [] : await readRows(connection, query)
      const least = leastTypes({ typeSystem, columns, found })
      // A column that has become text takes every cell as it is written.
      const types = new Map(
        [...least].map(([name, type]) => [name, has.get(name) === 'VARCHAR' ? 'VARCHAR' : type]),
      )
      await take(`select ${toValues(table, types)} from ${rows}`)
      return types
    } catch (error) {
      if (isTooLong(error) && size !== sizes.at(-1)) continue
      throw toPartsError(error, table)
    }
  }
  return has
}

const textOf = (error: unknown) => (error instanceof Error ? error.message : '')

const isTooLong = (error: unknown) => /Maximum line size|Parallel CSV Reader/i.test(textOf(error))

/** What is no row of CSV, or no cell of a kind that has one type only. */
const isMalformed = (error: unknown) =>
  isTooLong(error) || /CSV Error|^(Conversion|Invalid Input) Error/i.test(textOf(error))

/** What DuckDB says shows the row, which is nobody's business but the owner's. */
function toPartsError(error: unknown, { table }: WarehouseTable): unknown {
  if (!isMalformed(error)) return error
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
