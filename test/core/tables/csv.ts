import { parse } from 'csv-parse/sync'
import { stringify } from 'csv-stringify/sync'
import { parseLossless } from '../../../core/billing/lossless-json.ts'
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

/** JSON values by column: numbers with every digit, as raw JSON if parsing would change them. */
const decodeRow = ({ columns }: Table, cells: readonly (string | null)[]): Record<string, unknown> =>
  Object.fromEntries(
    columns.map(({ name, kind }, index) => {
      const cell = cells[index] ?? null
      return [name, cell === null || isText.has(kind) ? cell : parseLossless(cell)]
    }),
  )

const isText = new Set<Kind>(['text', 'date', 'timestamp'])
