import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { readCell } from '../../../core/tables/cell.ts'
import type { Kind, Table } from '../../../core/tables/table.ts'
import type { EncodedRows, RowEncoder } from '../../../core/tables/row-encoder.ts'

/** What csv-stringify writes for cells, NULL kept apart from the empty string. */
export const stringifyRows = (rows: readonly (readonly (string | null)[])[]): string =>
  stringify([...rows] as (string | null)[][], { quoted_match: /^$|^\ufeff/ })

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

/** A cell or row does not fit its table: the file was modified, or belongs to another table. */
class MalformedRowError extends Error {
  override readonly name = 'MalformedRowError'
}

/**
 * Decodes a CSV row into JSON values by column: JSON columns parsed, numbers with every digit (as raw JSON
 * if parsing would change them). Read the cells with `readCell`, which keeps null and '' apart.
 * @throws {MalformedRowError}
 */
export function decodeRow(table: Table, cells: readonly (string | null)[]): Record<string, unknown> {
  const { name, columns } = table
  if (cells.length !== columns.length)
    throw new MalformedRowError(`A row of ${name} has ${columns.length} cells, and this one ${cells.length}.`)
  const values = columns.map((column, index): [string, unknown] => {
    const cell = cells[index] ?? null
    const value = cell === null ? null : decodeCell[column.kind](cell)
    if (value === undefined)
      throw new MalformedRowError(`${name}.${column.name} is ${column.kind}, and a row has ${cell} there.`)
    return [column.name, value]
  })
  return Object.fromEntries(values)
}

const asText = (cell: string) => cell

const decodeCell: Readonly<Record<Kind, (cell: string) => unknown>> = {
  text: asText,
  date: asText,
  timestamp: asText,
  boolean: (cell) => (cell === 'true' ? true : cell === 'false' ? false : undefined),
  integer: parseExactly,
  decimal: parseExactly,
  json: parseExactly,
}

/** Parses JSON, keeping every number as written; undefined if the text is not JSON. */
function parseExactly(text: string): unknown {
  try {
    return JSON.parse(text, (_key, value, { source }) =>
      typeof value === 'number' && `${value}` !== source ? JSON.rawJSON(source!) : value,
    )
  } catch {
    return undefined
  }
}
