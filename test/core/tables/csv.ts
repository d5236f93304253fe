import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { readCell } from '../../../core/tables/csv-text.ts'
import { decodeRow } from '../../../core/tables/decode-row.ts'
import type { EncodedRows, RowEncoder } from '../../../core/tables/row-encoder.ts'

/** What csv-stringify writes for cells, NULL kept apart from the empty string. */
export const stringifyRows = (rows: readonly (readonly (string | null)[])[]): string =>
  stringify([...rows] as (string | null)[][], { quoted_match: /^$/ })

export const parseRows = (text: string): (string | null)[][] => parse(text, { cast: readCell })

/** The rows of a table as JSON values, read back from the CSV text. */
export function readTable(
  encoder: RowEncoder,
  encoded: EncodedRows,
  name: string,
): Record<string, unknown>[] {
  const index = encoder.tables.findIndex((table) => table.name === name)
  const rows = encoded.tables[index]!
  const cells = parseRows(rows.text)
  if (cells.length !== rows.rows) throw new Error(`${name}: ${cells.length} rows read, ${rows.rows} counted`)
  return cells.map((row) => decodeRow(encoder.tables[index]!, row))
}

/** JSON as the client parses it: every number as it was sent. */
export const parseLossless = (text: string): unknown =>
  JSON.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && `${value}` !== source ? JSON.rawJSON(source!) : value,
  )
