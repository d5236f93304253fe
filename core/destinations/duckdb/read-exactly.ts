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
 * The maximum row sizes to try, in order, in bytes: DuckDB's own 2 MB first, more only if a row needs it. By
 * default DuckDB would allocate buffers of 16 times that size.
 */
const sizes = [
  { row: 2_000_000, buffer: 32_000_000, parallel: true, memory: undefined },
  { row: 32_000_000, buffer: 64_000_000, parallel: true, memory: '512MB' },
  // With several threads, DuckDB rejects rows longer than a piece of its buffers.
  { row: 128_000_000, buffer: 128_000_000, parallel: false, memory: '1GB' },
]

/**
 * Passes the rows of parts, as a query with a table's columns, to a statement that consumes them. A first
 * pass over the cells decides the column types, so that the second converts each cell exactly.
 * @returns the types chosen
 * @throws {PartsDamagedError}
 */
export async function readExactly(options: {
  connection: DuckDBConnection
  table: WarehouseTable
  parts: readonly PartFile[]
  /** The current types of the columns in the warehouse. */
  has: ColumnTypes
  /** For copies of parts that DuckDB cannot read in place. */
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
      // A column that is already text takes every cell unchanged.
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

/** Whether the error means a malformed CSV row, or a malformed cell of a kind that has only one type. */
const isMalformed = (error: unknown) =>
  isTooLong(error) || /CSV Error|^(Conversion|Invalid Input) Error/i.test(textOf(error))

/** Replaces DuckDB's message, which quotes the row: its contents must not leak. */
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
