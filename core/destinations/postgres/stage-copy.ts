import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { DatabaseError, type Client } from 'pg'
import { from } from 'pg-copy-streams'
import type { PartFile } from '../destination.ts'
import { PartsDamagedError } from '../errors.ts'
import { readParts } from '../parts/read-parts.ts'
import { leastTypes, leastTypesQuery, type ColumnTypes } from '../warehouse/column-types.ts'
import type { WarehouseTable } from '../warehouse/layout.ts'
import { quote, stagedName } from '../warehouse/sql.ts'
import type { ResultRow } from '../warehouse/session.ts'
import { postgresTypes as typeSystem, stagedType } from './column-types.ts'

/**
 * Copies parts into a session table unchanged: PostgreSQL reads our CSV and keeps NULL apart from empty
 * text.
 * @returns the narrowest types that hold every cell exactly
 * @throws {PartsDamagedError}
 */
export async function stageCopy(options: {
  client: Client
  table: WarehouseTable
  parts: readonly PartFile[]
  signal: AbortSignal | undefined
}): Promise<ColumnTypes> {
  const { client, table, parts, signal } = options
  const { name, key } = table.table
  const columns = table.columns.filter((column) => column.name === column.cell)
  const cells = columns.map((column) => {
    const type = stagedType(column.kind)
    return `${quote(column.name)} ${key.includes(column.name) ? typeSystem.keyType(type) : type}`
  })
  await client.query(`create temporary table ${stagedName(name)} (${cells.join(', ')}) on commit drop`)
  const copy = client.query(from(`copy ${stagedName(name)} from stdin (format csv)`))
  try {
    await pipeline(Readable.from(readParts(parts, signal), { objectMode: false }), copy)
  } catch (error) {
    // Replaces PostgreSQL's message, which quotes the row: its contents must not leak.
    if (error instanceof DatabaseError && error.code?.startsWith('22'))
      throw new PartsDamagedError(
        `The parts of ${name} are no rows of that table (code ${error.code}). Run the export again.`,
      )
    throw error
  }
  const query = leastTypesQuery({ typeSystem, columns, rows: stagedName(name) })
  const { rows } = query === undefined ? { rows: [] } : await client.query<ResultRow>(query)
  return leastTypes({ typeSystem, columns: table.columns, found: rows[0] })
}
