import { unguardFormula } from '../../tables/formula-guard.ts'
import { readableName } from '../cells/invisible.ts'
import { UnreadableFileError } from '../errors.ts'
import { shownName } from '../source-file.ts'
import { detectDialect } from './dialect.ts'
import type { Encoding } from './encoding.ts'
import { type Dialect, readRows } from './read-rows.ts'
import type { SourceRow } from './scanner.ts'

/** How to read the rows of a file. A run detects it once and keeps it in its check file. */
export interface Table {
  dialect: Dialect
  header: readonly string[]
  /** As the spreadsheet counts, from 1. */
  headerRow: number
  skipRows: readonly number[]
  /**
   * Cells that would run as a formula have a `'` prefix to remove: in result files and in exports for
   * spreadsheets. The latter have `;` and a byte order mark; a spreadsheet that saves one keeps at least the
   * `;`.
   */
  guarded: boolean
}

/** The columns that result files add to those of the file; a result file may be imported again. */
export const resultColumns = ['_row', '_status', '_id', '_error', '_sent_at', '_sent', '_look'] as const

/** Far more than the fields and lines of one change; each column is searched among all of them. */
const mostColumns = 2_000

export interface TableOptions {
  /** Default: the first row that is not blank. Rows above it are skipped. */
  headerRow?: number | undefined
  skipRows?: readonly (number | 'hidden')[] | undefined
  /** How to read a file that is not UTF-8. Default: Windows-1252, where that is clear. */
  encoding?: Encoding | undefined
}

/**
 * Detects how a file is written, and reads its header. A result file has its header in row 1 and no rows to
 * skip, whatever the options for its source file.
 * @throws {UnreadableFileError} it is not a table with a header and at least one row
 */
export async function openTable(
  path: string,
  { headerRow, skipRows = [], encoding }: TableOptions = {},
): Promise<Table> {
  const name = shownName(path)
  const dialect = await detectDialect(path, encoding)
  let header: SourceRow | undefined
  let isResult = false
  for await (const row of readRows({ path, dialect })) {
    if (header === undefined) {
      isResult = isResultFile(row.cells)
      if (!isResult && row.row < (headerRow ?? 1)) continue
      if (!isResult && row.row > (headerRow ?? Infinity)) break
      header = row
      if (header.cells.length > mostColumns)
        throw new UnreadableFileError(
          `${name} has ${header.cells.length.toLocaleString('en')} columns; the limit is ${mostColumns.toLocaleString('en')}. Remove the columns that you do not import.`,
        )
      continue
    }
    const guarded = dialect.delimiter === ';' || dialect.bom || isResult
    return {
      dialect,
      guarded,
      header: guarded ? header.cells.map(unguardFormula) : header.cells,
      headerRow: header.row,
      skipRows: isResult ? [] : skipRows.filter((row) => row !== 'hidden'),
    }
  }
  if (header === undefined && headerRow !== undefined)
    throw new UnreadableFileError(
      `${name}: row ${headerRow} is empty, so it cannot be the header. Change --header-row.`,
    )
  throw new UnreadableFileError(
    `${name} has a header but no rows. It needs at least one row below the header.`,
  )
}

/** Whether a header belongs to a result file. */
export function isResultFile(header: readonly string[]): boolean {
  const names = new Set(header.map(readableName))
  return names.has('_row') && names.has('_error')
}

/** The rows below the header, without blank and skipped ones. */
export async function* readTable(
  path: string,
  { dialect, guarded, headerRow, skipRows }: Table,
): AsyncGenerator<SourceRow> {
  const skipped = new Set(skipRows)
  for await (const row of readRows({ path, dialect })) {
    if (row.row <= headerRow || skipped.has(row.row)) continue
    yield guarded ? { ...row, cells: row.cells.map(unguardFormula) } : row
  }
}
