import { stringify } from 'csv-stringify'
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { guardFormula } from '../../tables/formula-guard.ts'
import { nearestName } from '../../tables/nearest-name.ts'
import type { Conventions } from '../cells/locale.ts'
import { MappingError, UnreadableFileError } from '../errors.ts'
import { sizeLimits } from '../file-size.ts'
import { openArchive } from './archive.ts'
import { renderNumber } from './render.ts'
import { type Merge, readSheetRows, type SheetCell, type SheetRow } from './sheet-rows.ts'
import { readWorkbook, type Sheet, type Workbook } from './workbook.ts'

export interface WorkbookOptions {
  conventions: Conventions
  /** Selected by name; default: the first visible sheet. */
  sheet?: string | undefined
  /** Rows above it are a title. */
  headerRow?: number | undefined
  /** How to treat hidden or filtered rows. */
  hiddenRows: 'refuse' | 'skip' | 'read'
}

/** Whether a file is a zip archive, as .xlsx files are. */
export async function isWorkbook(path: string): Promise<boolean> {
  await using file = await open(path)
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
  return buffer.equals(Buffer.from([0x50, 0x4b, 0x03, 0x04]))
}

/**
 * Writes the rows of a sheet as CSV, each cell as a person would type it under the import's conventions.
 * Rows keep their numbers: blank lines replace missing and skipped rows.
 * @throws {UnreadableFileError}
 * @throws {MappingError} there is no such sheet
 */
export async function convertWorkbook(path: string, to: string, options: WorkbookOptions): Promise<void> {
  const name = basename(path)
  const archive = await openArchive(path, name)
  try {
    const workbook = await readWorkbook(archive, name)
    const sheet = findSheet(workbook.sheets, name, options.sheet)
    const chunks = archive.read(sheet.path, sizeLimits.table.megabytes * 1024 ** 2)
    const rows = readSheetRows(chunks, name, workbook)
    await pipeline(
      toLines(rows, { ...options, name, workbook }),
      // The byte order mark also marks the cells as guarded.
      stringify({
        delimiter: options.conventions.decimal === ',' ? ';' : ',',
        bom: true,
        record_delimiter: '\r\n',
        quoted_match: /[\r\n]/,
      }),
      createWriteStream(to, { flags: 'wx' }),
    )
  } finally {
    archive.close()
  }
}

function findSheet(sheets: readonly Sheet[], name: string, asked: string | undefined): Sheet {
  const visible = sheets.filter(({ isHidden }) => !isHidden)
  if (asked === undefined) {
    const [first] = visible
    if (first !== undefined) return first
    throw new UnreadableFileError(`${name} has no visible sheet.`)
  }
  const found = sheets.find((sheet) => sheet.name.trim().toLowerCase() === asked.trim().toLowerCase())
  if (found !== undefined) return found
  const near = nearestName(
    asked,
    visible.map((sheet) => sheet.name),
  )
  const suggestion =
    near === undefined
      ? `Its sheets are ${visible.map((sheet) => sheet.name).join(', ')}.`
      : `Did you mean ${near}?`
  throw new MappingError(`${name} has no sheet ${asked}. ${suggestion}`, {
    withoutValues: `${name} has no sheet with the name given as --sheet.`,
  })
}

type Lines = WorkbookOptions & { name: string; workbook: Workbook }

async function* toLines(
  rows: AsyncIterable<SheetRow | Merge>,
  { name, workbook, conventions, headerRow = 1, hiddenRows }: Lines,
): AsyncGenerator<string[]> {
  const { formats, is1904 } = workbook
  const hidden: number[] = []
  const merged: string[] = []
  let last = 0
  let width = 0
  let letters = 0
  const toText = (cell: SheetCell | undefined) => {
    if (cell === undefined) return ''
    if ('text' in cell) return cell.text
    return renderNumber(cell.value, formats[cell.style] ?? 'number', { ...conventions, is1904 })
  }
  for await (const item of rows) {
    if ('merged' in item) {
      if (spansRowsBelow(item.merged, headerRow)) merged.push(item.merged)
      continue
    }
    for (; last < item.row - 1; last++) yield ['']
    last = item.row
    const isData = item.row > headerRow && item.cells.some((cell) => toText(cell).trim() !== '')
    if (item.isHidden && isData) hidden.push(item.row)
    if (item.isHidden && hiddenRows === 'skip') yield ['']
    else {
      // A sheet omits trailing empty cells; CSV must not.
      width = Math.max(width, item.cells.length)
      const cells = Array.from({ length: width }, (_, at) => guardFormula(toText(item.cells[at])))
      letters += cells.reduce((sum, { length }) => sum + length, 0)
      // Text stored once may be used by any number of cells.
      if (letters > sizeLimits.table.megabytes * 1024 ** 2)
        throw new UnreadableFileError(
          `${name} is too large: its cells have more than 1 GB. ${sizeLimits.table.advice}`,
        )
      yield cells.length === 0 ? [''] : cells
    }
  }
  if (merged.length > 0)
    throw new UnreadableFileError(
      `${name} has merged cells below its header (${few(merged)}). Unmerge them, so that each row has its own values; if they are above the header, use --header-row.`,
    )
  if (hidden.length > 0 && hiddenRows === 'refuse')
    throw new UnreadableFileError(
      `${name} has hidden rows, perhaps because of a filter (rows ${few(hidden)}). Show them in the spreadsheet to import them, or leave them out with --skip-rows hidden.`,
    )
}

/** Whether a merged range has cells of several rows, the last of them below the header. */
function spansRowsBelow(range: string, headerRow: number): boolean {
  const [, first = 0, last = 0] = /^[A-Z]+(\d+):[A-Z]+(\d+)$/.exec(range)?.map(Number) ?? []
  return last > first && last > headerRow
}

const mostNamed = 10
const few = (names: readonly (string | number)[]) =>
  names.length <= mostNamed
    ? names.join(', ')
    : `${names.slice(0, mostNamed).join(', ')} and ${names.length - mostNamed} more`
