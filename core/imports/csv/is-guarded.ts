import { resultColumns } from '../mapping/column-mapping.ts'
import type { Dialect } from './dialect.ts'

/**
 * Whether the cells of a file have a `'` before what a spreadsheet would run: it is a sheet of results, or an export
 * for spreadsheets, which has `;` and a mark at its start (a spreadsheet that saves it keeps at least the `;`).
 */
export function isGuarded({ delimiter, bom }: Dialect, header: readonly string[]): boolean {
  const names = new Set(header.map((column) => column.trim()))
  const [row, , , error] = resultColumns
  return delimiter === ';' || bom || (names.has(row) && names.has(error))
}
