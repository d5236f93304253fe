import { basename } from 'node:path'
import { unguardFormula } from '../../tables/formula-guard.ts'
import { UnreadableFileError } from '../errors.ts'
import { type Dialect, detectDialect } from './dialect.ts'
import { readRows } from './read-rows.ts'
import type { SourceRow } from './scanner.ts'

/** How the rows of a file are read. A run detects it once and keeps it in its check file. */
export interface Table {
  dialect: Dialect
  header: readonly string[]
  /** Cells that would run as a formula have a `'` in front, which is removed. */
  guarded: boolean
}

/** The columns that result files have beside those of the file; such a file may be imported again. */
export const resultColumns = ['_row', '_status', '_id', '_error', '_sent_at', '_sent', '_look'] as const

/** Far more than the fields and lines of one change; each column is looked up among all of them. */
const mostColumns = 2_000

/**
 * Detects how a file is written, and reads its header.
 * @throws {UnreadableFileError} if it is not a table with a header and at least one row
 */
export async function openTable(path: string): Promise<Table> {
  const dialect = await detectDialect(path)
  let header: readonly string[] | undefined
  for await (const { cells } of readRows({ path, dialect })) {
    if (header !== undefined) {
      const guarded = isGuarded(dialect, header)
      return { dialect, guarded, header: guarded ? header.map(unguardFormula) : header }
    }
    header = cells
    if (header.length > mostColumns)
      throw new UnreadableFileError(
        `${basename(path)} has ${header.length.toLocaleString('en')} columns; the limit is ${mostColumns.toLocaleString('en')}. Remove the columns that you do not import.`,
      )
  }
  throw new UnreadableFileError(
    `${basename(path)} has a header but no rows. It needs at least one row below the header.`,
  )
}

/**
 * Result files and exports for spreadsheets are guarded against formulas. The latter have `;` and a byte order mark;
 * a spreadsheet that saves one keeps at least the `;`.
 */
function isGuarded({ delimiter, bom }: Dialect, header: readonly string[]): boolean {
  const names = new Set(header.map((column) => column.trim()))
  return delimiter === ';' || bom || (names.has('_row') && names.has('_error'))
}

/** The rows below the header, without blank ones. */
export async function* readTable(path: string, { dialect, guarded }: Table): AsyncGenerator<SourceRow> {
  let isHeader = true
  for await (const row of readRows({ path, dialect })) {
    if (!isHeader) yield guarded ? { ...row, cells: row.cells.map(unguardFormula) } : row
    isHeader = false
  }
}
