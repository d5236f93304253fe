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
import type { ResultRow, Staged } from '../warehouse/session.ts'
import { isTooLong, keyType, postgresTypes as typeSystem, stagedType } from './column-types.ts'

/**
 * Copies parts into a session table unchanged: PostgreSQL reads our CSV and keeps NULL apart from empty
 * text. The types that the warehouse has, or would give a new column, nearly always hold every cell, so they
 * are tried first; cells that do not fit are copied again as types that hold anything.
 * @throws {PartsDamagedError}
 */
export async function stageCopy(options: {
  client: Client
  table: WarehouseTable
  parts: readonly PartFile[]
  /** The types of the columns in the warehouse. */
  types: ColumnTypes
  signal: AbortSignal | undefined
}): Promise<Staged> {
  const { client, table, types } = options
  const { name } = table.table
  const columns = table.columns.filter((column) => column.name === column.cell)
  const likely = new Map(columns.map((column) => [column.name, stagedType(column, types)]))
  const widest = new Map(columns.map((column) => [column.name, stagedType(column)]))
  const first = await copyAs(likely, options)
  const staged = first.misfit === undefined ? likely : widest
  const copied = first.misfit === undefined ? first : await copyAs(widest, options)
  // PostgreSQL's message quotes the row: its contents must not leak.
  if (copied.misfit !== undefined)
    throw new PartsDamagedError(
      `The parts of ${name} are no rows of that table (code ${copied.misfit}). Run the export again.`,
    )
  const wide = columns.filter((column) => staged.get(column.name) !== typeSystem.types[column.kind][0])
  const query = leastTypesQuery({ typeSystem, columns: wide, rows: stagedName(name) })
  const { rows } = query === undefined ? { rows: [] } : await client.query<ResultRow>(query)
  return {
    rows: copied.rows,
    types: leastTypes({ typeSystem, columns: table.columns, found: rows[0] }),
  }
}

/**
 * Copies parts into a new session table with columns of these types, unless a row does not fit.
 * @returns how many rows, or PostgreSQL's code of a row that does not fit; there is no table then
 */
async function copyAs(
  types: ColumnTypes,
  options: {
    client: Client
    table: WarehouseTable
    parts: readonly PartFile[]
    signal: AbortSignal | undefined
  },
): Promise<{ rows: number; misfit?: string | undefined }> {
  const { client, table, parts, signal } = options
  const { name, key } = table.table
  const cells = [...types].map(
    ([column, type]) => `${quote(column)} ${key.includes(column) ? keyType(type) : type}`,
  )
  await client.query(
    `savepoint staging; create temporary table ${stagedName(name)} (${cells.join(', ')}) on commit drop`,
  )
  const copy = client.query(from(`copy ${stagedName(name)} from stdin (format csv)`))
  const misfit = await pipeline(Readable.from(readParts(parts, { signal }), { objectMode: false }), copy)
    .then(() => findUnreadable(client, stagedName(name), types))
    .catch(toMisfit)
  await client.query(
    `${misfit === undefined ? '' : 'rollback to savepoint staging; '}release savepoint staging`,
  )
  return { rows: copy.rowCount, misfit }
}

/** Class 22: no value of the type; class 54: larger than PostgreSQL allows. */
function toMisfit(error: unknown): string {
  if (error instanceof DatabaseError && /^(22|54)/.test(error.code ?? '')) return error.code!
  throw error
}

/** Checks that PostgreSQL can return every staged jsonb: it writes out all digits of `1e99999`. */
async function findUnreadable(client: Client, rows: string, types: ColumnTypes): Promise<string | undefined> {
  const tests = [...types].flatMap(([name, type]) => (type === 'jsonb' ? [isTooLong(quote(name))] : []))
  if (tests.length === 0) return undefined
  const found = await client.query(`select from ${rows} where ${tests.join(' or ')} limit 1`)
  return found.rowCount === 0 ? undefined : '54000'
}
