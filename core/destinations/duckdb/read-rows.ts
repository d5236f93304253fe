import type { DuckDBConnection } from '@duckdb/node-api'
import type { ResultRow } from '../warehouse/session.ts'

/** Reads all rows of a result, as text. */
export async function readRows(connection: DuckDBConnection, sql: string): Promise<ResultRow[]> {
  const reader = await connection.runAndReadAll(sql)
  return reader.getRowObjectsJson().map(toTexts)
}

/** Streams the rows of a result of any size, as text. */
export async function* streamRows(connection: DuckDBConnection, sql: string): AsyncGenerator<ResultRow> {
  const result = await connection.stream(sql)
  for await (const rows of result.yieldRowObjectJson()) yield* rows.map(toTexts)
}

const toTexts = (row: Record<string, unknown>): ResultRow =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [name, typeof value === 'string' ? value : toText(value)]),
  )

/** Numbers and booleans arrive as such; numbers that JSON cannot represent arrive as text. */
const toText = (value: unknown) => (value === null ? null : JSON.stringify(value))
