import { stringify } from 'csv-stringify'
import { createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { guardFormula } from '../../tables/formula-guard.ts'
import type { Conventions } from '../cells/notation.ts'
import { unreadText } from '../cells/refused.ts'
import { isResultFile } from '../csv/table.ts'
import { few, InvalidFile, InvalidMapping, quote, say } from '../errors.ts'
import type { SheetChoice } from '../mapping/mapping.ts'
import { sizeLimits } from '../source-file.ts'
import { type ColumnUse, dayOf, type Rendering, renderNumber, renderText } from './number-format.ts'
import { openArchive } from './parts.ts'
import { readSheetRows, type SheetCell, type SheetFacts, type SheetRow } from './sheet-rows.ts'
import { findSheet, hasRows, readWorkbook, type Workbook } from './workbook.ts'

export interface WorkbookOptions {
  role: SheetChoice['role']
  conventions: Conventions
  /** Selected by name; default: the first visible sheet. */
  sheet?: string | undefined
  /** Rows above it are a title; 0: there is no header. Default: the first row that is not blank. */
  headerRow?: number | undefined
  skipRows?: readonly (number | 'hidden')[] | undefined
  /** How to treat hidden or filtered rows; `read`: and hidden columns. */
  hiddenRows: 'refuse' | 'skip' | 'read'
  /** Real dates are right, although texts beside them raise a doubt. */
  realDates?: boolean | undefined
  /** What each column of a header holds; undefined for a column that is not read. */
  usesOf: (header: readonly string[]) => readonly (ColumnUse | undefined)[]
}

/** Whether a file is a zip archive, as .xlsx files are. */
export async function isWorkbook(path: string): Promise<boolean> {
  await using file = await open(path)
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
  return buffer.toString('latin1') === 'PK\u0003\u0004'
}

/**
 * Writes the rows of a sheet as CSV, each cell as a person would type it under the import's conventions.
 * Rows keep their numbers: blank lines replace missing and skipped rows.
 * @throws {InvalidFile}
 * @throws {InvalidMapping} there is no such sheet, or its dates have two readings
 */
export async function convertWorkbook(
  path: string,
  to: string,
  options: WorkbookOptions,
): Promise<SheetChoice> {
  const { role, conventions } = options
  const name = basename(path)
  using archive = await openArchive(path, name)
  const workbook = await readWorkbook(archive, name)
  const sheet = findSheet(workbook.sheets, name, options.sheet)
  if (sheet.path === undefined || !archive.has(sheet.path))
    throw new InvalidFile(
      `${name} is damaged: it does not contain its sheet ${sheet.name}. Save it again as .xlsx.`,
    )
  const facts: SheetFacts = { isHidden: () => false, merges: [] }
  const parts = archive.read(sheet.path, sizeLimits.table.megabytes * 1024 ** 2)
  const rows = readSheetRows(parts, { name, workbook, facts })
  let filled = 0
  const onRow = () => void (filled += 1)
  await pipeline(
    toLines(rows, { ...options, name, workbook, facts, onRow }),
    // The byte order mark also marks the cells as guarded.
    stringify({
      delimiter: conventions.decimal === ',' ? ';' : ',',
      bom: true,
      record_delimiter: '\r\n',
      quoted_match: /[\r\n]/,
    }),
    createWriteStream(to, { flags: 'wx' }),
  )
  const unread = workbook.sheets
    .filter((other) => other !== sheet && hasRows(other))
    .map((other) => other.name)
  // The first sheet may be a cover.
  if (filled < (role === 'lookup' ? 1 : 2) && unread.length > 0) {
    const advice = role === 'file' ? 'choose one with --sheet' : 'put the right one first'
    throw new InvalidFile(
      `${name}: the sheet ${sheet.name} has no rows${role === 'lookup' ? '' : ' below a header'}. Its other sheets (${unread.join(', ')}) were not read; ${advice}.`,
    )
  }
  return { role, file: name, read: sheet.name, unread }
}

type Lines = WorkbookOptions & { name: string; workbook: Workbook; facts: SheetFacts; onRow: () => void }

async function* toLines(rows: AsyncIterable<SheetRow>, options: Lines): AsyncGenerator<string[]> {
  const { name, workbook, facts, onRow, usesOf, hiddenRows, conventions } = options
  let { headerRow = 1 } = options
  const rendering = { ...conventions, is1904: workbook.is1904 }
  const skipped = new Set<number | 'hidden'>(options.skipRows)
  const doubts = createDoubts(options)
  /** Undefined until the header is read. */
  let columns: Column[] | undefined = headerRow === 0 ? toColumns([]) : undefined
  let last = 0
  let width = 0
  let letters = 0
  for await (const { row, isHidden, cells } of rows) {
    const texts = Array.from(cells, (cell, at) => toText(cell, columns?.[at]?.use, rendering))
    // A sheet may have a million rows with nothing but a style.
    if (texts.every((text) => text.trim() === '') || (isHidden && hiddenRows === 'skip')) continue
    for (; last < row - 1; last++) yield ['']
    last = row
    if (columns === undefined) {
      // The mapping says where the rows are in its source, of which somebody made this workbook.
      if (isResultFile(texts)) {
        headerRow = row
        skipped.clear()
      }
      if (row >= headerRow) columns = toColumns(texts)
    } else if (!skipped.has(row)) {
      if (isHidden) doubts.addHiddenRow(row)
      for (const [at, column] of columns.entries()) {
        const cell = cells[at]
        if (cell !== undefined && texts[at] !== '') doubts.add(row, column, cell)
      }
    }
    // A sheet omits trailing empty cells; CSV must not.
    width = Math.max(width, texts.length)
    const line = Array.from({ length: width }, (_, at) => guardFormula(texts[at] ?? ''))
    letters += line.reduce((sum, { length }) => sum + length, 0)
    // Text stored once may be used by any number of cells.
    if (letters > sizeLimits.table.megabytes * 1024 ** 2)
      throw new InvalidFile(`${name} is too large: its cells have more than 1 GB. ${sizeLimits.table.advice}`)
    onRow()
    yield line
  }
  doubts.refuse(headerRow)

  function toColumns(header: readonly string[]): Column[] {
    return usesOf(header).map((use, at) => ({
      name: header[at]?.trim() ?? '',
      use,
      isHidden: facts.isHidden(at),
    }))
  }
}

function toText(cell: SheetCell | undefined, use: ColumnUse | undefined, rendering: Rendering): string {
  if (cell === undefined) return ''
  if ('value' in cell) return renderNumber(cell.value, cell.format, use ?? 'other', rendering)
  if ('truth' in cell) return use === 'text' ? unreadText('#TRUTH', String(cell.truth)) : String(cell.truth)
  return use === 'text' && cell.format !== undefined ? renderText(cell.text, cell.format) : cell.text
}

interface Column {
  name: string
  use: ColumnUse | undefined
  isHidden: boolean
}

/** The dates of one column that may have day and month swapped. */
interface Dates {
  /** The first real date whose day could be the month, and how many there are. */
  first?: { row: number; day: string }
  swappable: number
  /** Whether a real date has a day that cannot be the month. */
  isFixed?: boolean
  /** A text that only one order of day and month explains. */
  text?: { row: number; text: string }
}

/** 4 March as 3 April. */
const swap = (date: string): string => `${date.slice(0, 4)}-${date.slice(8)}-${date.slice(5, 7)}`

/** A date as people type it, with day and month in front. */
const typedDate = /^\s*(\d{1,2})[-/.](\d{1,2})[-/.]\d{2}(\d{2})?(?!\d)/

/** Collects what makes a sheet another one than people see; only its end shows whether it does. */
function createDoubts({ name, workbook, facts, hiddenRows, realDates }: Lines) {
  const rows: number[] = []
  const columns = new Set<string>()
  /** Formulas with the result 0 or nothing, and whether any has another one. */
  const zeros: string[] = []
  let hasResults = false
  const dates = new Map<string, Dates>()

  function addDate(row: number, column: string, cell: SheetCell): void {
    const known = dates.get(column) ?? { swappable: 0 }
    dates.set(column, known)
    const day = 'value' in cell ? dayOf(cell.value, cell.format, workbook.is1904) : undefined
    if (day !== undefined && Number(day.slice(8)) > 12) known.isFixed = true
    else if (day !== undefined && swap(day) !== day) {
      known.first ??= { row, day }
      known.swappable += 1
    } else if ('text' in cell) {
      const [, first = 0, second = 0] = typedDate.exec(cell.text)?.map(Number) ?? []
      if (Math.max(first, second) > 12) known.text ??= { row, text: cell.text }
    }
  }

  /** @throws {InvalidMapping} */
  function refuseDates(column: string, { first, swappable, isFixed, text }: Dates): void {
    if (realDates === true || first === undefined || isFixed === true || text === undefined) return
    const { day, row } = first
    const all = swappable === 1 ? 'the only real date' : `all ${swappable} real dates`
    throw new InvalidMapping(
      say`${name}, ${column}: row ${text.row} has the text ${quote(text.text.trim())}, but ${all} could have day and month swapped, as happens when a spreadsheet opens a file of another language: row ${row} could mean ${quote(day)} or ${quote(swap(day))}. Use --input realDates=true if the sheet shows the right dates, or import the file from which it was made.`,
    )
  }

  return {
    addHiddenRow: (row: number) => void rows.push(row),
    /** A cell of a column that may be read. */
    add(row: number, { name: column, use, isHidden }: Column, cell: SheetCell): void {
      if (use === undefined) return
      if (isHidden) columns.add(column)
      if (cell.formula === 'result') hasResults = true
      if (cell.formula === 'zero') zeros.push(`row ${row}, ${column}`)
      if (use === 'date') addDate(row, column, cell)
    },
    /** @throws {InvalidFile} @throws {InvalidMapping} */
    refuse(headerRow: number): void {
      const merges = facts.merges.filter((range) => spansRowsBelow(range, headerRow))
      if (merges.length > 0)
        throw new InvalidFile(
          `${name} has merged cells below its header (${few(merges)}). Unmerge them, so that each row has its own values; if they are above the header, use --header-row.`,
        )
      if (rows.length > 0 && hiddenRows === 'refuse')
        throw new InvalidFile(
          `${name} has hidden rows, perhaps because of a filter (rows ${few(rows)}). Show them in the spreadsheet to import them, or leave them out with --skip-rows hidden.`,
        )
      if (columns.size > 0 && hiddenRows !== 'read')
        throw new InvalidFile(
          `${name} has values in hidden columns (${few([...columns])}). Show the columns in the spreadsheet to import them, or ignore each with --map "<column>=".`,
        )
      if (zeros.length > 0 && !hasResults)
        throw new InvalidFile(
          `${name} seems never to have been calculated: the result of each of its formulas is 0 or empty (${few(zeros, { separator: '; ' })}). Open it in a spreadsheet and save it again.`,
        )
      for (const [column, found] of dates) refuseDates(column, found)
    },
  }
}

/** Whether a merged range has cells of several rows, the last of them below the header. */
function spansRowsBelow(range: string, headerRow: number): boolean {
  const [, first = 0, last = 0] = /^[A-Z]+(\d+):[A-Z]+(\d+)$/.exec(range)?.map(Number) ?? []
  return last > first && last > headerRow
}
