import { stringify } from 'csv-stringify'
import { createReadStream, createWriteStream } from 'node:fs'
import { open } from 'node:fs/promises'
import { basename } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { guardFormula } from '../../tables/formula-guard.ts'
import { nearestName } from '../../tables/nearest-name.ts'
import type { Conventions } from '../cells/notation.ts'
import { isResultFile } from '../csv/table.ts'
import { MappingError, UnreadableFileError, quote, say } from '../errors.ts'
import { sizeLimits } from '../source-file.ts'
import type { SheetChoice } from '../mapping/mapping.ts'
import { openArchive, protectedByPassword } from './parts.ts'
import { type ColumnUse, type Rendering, dayOf, mayBeSwapped, renderNumber, swap } from './render.ts'
import { type HiddenColumns, type Merge, type SheetCell, type SheetRow, readSheetRows } from './sheet-rows.ts'
import { showText } from './number-format.ts'
import { unreadText } from '../cells/placeholders.ts'
import { type Sheet, type Workbook, readWorkbook } from './workbook.ts'

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
  /** Whether real dates are right, where texts beside them raise a doubt. */
  dateCells?: 'stored' | 'swapped' | undefined
  /** What each column of a header holds; undefined for a column that is not read. */
  usesOf: (header: readonly string[]) => readonly (ColumnUse | undefined)[]
}

/**
 * Whether a file is a zip archive, as .xlsx files are.
 * @throws {UnreadableFileError} it is a workbook that is encrypted with a password
 */
export async function isWorkbook(path: string): Promise<boolean> {
  await using file = await open(path)
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
  if (buffer.equals(compoundFile) && (await isEncrypted(path)))
    throw new UnreadableFileError(`${basename(path)} ${protectedByPassword}`)
  return buffer.equals(Buffer.from([0x50, 0x4b, 0x03, 0x04]))
}

/** The first bytes of an encrypted workbook, and of an .xls. */
const compoundFile = Buffer.from([0xd0, 0xcf, 0x11, 0xe0])

/** Whether a compound file has the stream of an encrypted workbook (MS-OFFCRYPTO, 2.3.4.4), in any sector. */
async function isEncrypted(path: string): Promise<boolean> {
  const stream = Buffer.from('EncryptedPackage', 'utf16le')
  let tail = Buffer.alloc(0)
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    const bytes = Buffer.concat([tail, chunk])
    if (bytes.includes(stream)) return true
    tail = bytes.subarray(-stream.length)
  }
  return false
}

/**
 * Writes the rows of a sheet as CSV, each cell as a person would type it under the import's conventions.
 * Rows keep their numbers: blank lines replace missing and skipped rows.
 * @throws {UnreadableFileError}
 * @throws {MappingError} there is no such sheet, or its dates have two readings
 */
export async function convertWorkbook(
  path: string,
  to: string,
  options: WorkbookOptions,
): Promise<SheetChoice> {
  const name = basename(path)
  const archive = await openArchive(path, name)
  try {
    const workbook = await readWorkbook(archive, name)
    const sheet = findSheet(workbook.sheets, name, options.sheet)
    if (sheet.path === undefined || !archive.has(sheet.path))
      throw new UnreadableFileError(
        `${name} is damaged: it does not contain its sheet ${sheet.name}. Save it again as .xlsx.`,
      )
    const chunks = archive.read(sheet.path, sizeLimits.table.megabytes * 1024 ** 2)
    const rows = readSheetRows(chunks, name, workbook)
    let filled = 0
    const onRow = () => void (filled += 1)
    await pipeline(
      toLines(rows, { ...options, name, workbook, onRow }),
      // The byte order mark also marks the cells as guarded.
      stringify({
        delimiter: options.conventions.decimal === ',' ? ';' : ',',
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
    const { role } = options
    if (filled < (role === 'lookup' ? 1 : 2) && unread.length > 0) {
      const advice = role === 'file' ? 'choose one with --sheet' : 'put the right one first'
      throw new UnreadableFileError(
        `${name}: the sheet ${sheet.name} has no rows${role === 'lookup' ? '' : ' below a header'}. Its other sheets (${unread.join(', ')}) were not read; ${advice}.`,
      )
    }
    return { role, file: name, read: sheet.name, unread }
  } finally {
    archive.close()
  }
}

/** Charts, dialogs and macros are sheets, too. */
const hasRows = ({ type }: Sheet) => type === 'worksheet' || type === ''

function findSheet(sheets: readonly Sheet[], name: string, asked: string | undefined): Sheet {
  const visible = sheets.filter((sheet) => !sheet.isHidden && hasRows(sheet))
  if (asked === undefined) {
    const [first] = visible
    if (first !== undefined) return first
    throw new UnreadableFileError(`${name} has no visible sheet with cells.`)
  }
  const found = sheets.find((sheet) => sheet.name.trim().toLowerCase() === asked.trim().toLowerCase())
  if (found !== undefined && hasRows(found)) return found
  if (found !== undefined)
    throw new UnreadableFileError(
      `${name}: the sheet ${found.name} has no cells; it is a chart, a dialog or a macro.`,
    )
  const near = nearestName(
    asked,
    visible.map((sheet) => sheet.name),
  )
  const suggestion =
    near === undefined
      ? `Its sheets are ${visible.map((sheet) => sheet.name).join(', ')}.`
      : `Did you mean ${near}?`
  throw new MappingError(
    say`${name} has no sheet ${quote(asked, 'with the name in --sheet')}. ${quote(suggestion, '')}`,
  )
}

type Lines = WorkbookOptions & { name: string; workbook: Workbook; onRow: () => void }

async function* toLines(
  rows: AsyncIterable<SheetRow | Merge | HiddenColumns>,
  {
    name,
    workbook,
    onRow,
    usesOf,
    headerRow: asked = 1,
    skipRows = [],
    hiddenRows,
    dateCells,
    ...options
  }: Lines,
): AsyncGenerator<string[]> {
  const faults = createSheetFaults({ name, hiddenRows, dateCells })
  const rendering = { ...options.conventions, is1904: workbook.is1904, swapsDates: dateCells === 'swapped' }
  const skipped = new Set<number | 'hidden'>(skipRows)
  let whole: HiddenColumns = { isHidden: () => false, hidesZeros: false }
  /** Undefined until the header is read. */
  let header = asked === 0 ? toHeader([]) : undefined
  let headerRow = asked
  let last = 0
  let width = 0
  let letters = 0
  for await (const item of rows) {
    if ('merged' in item) {
      if (spansRowsBelow(item.merged, headerRow)) faults.addMerge(item.merged)
      continue
    }
    if (!('cells' in item)) {
      whole = item
      continue
    }
    const uses = header?.uses ?? []
    const texts: string[] = []
    for (const [at, cell] of item.cells.entries())
      texts.push(
        cell === undefined
          ? ''
          : whole.hidesZeros && uses[at] === 'text' && 'value' in cell && cell.value === 0
            ? unreadText('#ZERO', '0')
            : toText(cell, uses[at], rendering),
      )
    // A sheet may have a million rows with nothing but a style.
    if (texts.every((text) => text.trim() === '') || (item.isHidden && hiddenRows === 'skip')) continue
    for (; last < item.row - 1; last++) yield ['']
    last = item.row
    if (header === undefined) {
      // The mapping says where the rows are in its source, of which somebody made this workbook.
      if (isResultFile(texts)) {
        headerRow = item.row
        skipped.clear()
      }
      if (item.row >= headerRow) header = toHeader(texts)
    } else if (!skipped.has(item.row)) {
      if (item.isHidden) faults.addHiddenRow(item.row)
      look(item, texts, header)
    }
    // A sheet omits trailing empty cells; CSV must not.
    width = Math.max(width, texts.length)
    const cells = Array.from({ length: width }, (_, at) => guardFormula(texts[at] ?? ''))
    letters += cells.reduce((sum, { length }) => sum + length, 0)
    // Text stored once may be used by any number of cells.
    if (letters > sizeLimits.table.megabytes * 1024 ** 2)
      throw new UnreadableFileError(
        `${name} is too large: its cells have more than 1 GB. ${sizeLimits.table.advice}`,
      )
    onRow()
    yield cells
  }
  faults.refuse()

  function toHeader(texts: readonly string[]) {
    const uses = usesOf(texts)
    return {
      names: texts.map((text) => text.trim()),
      uses,
      hidden: uses.map((_, at) => whole.isHidden(at)),
    }
  }

  /** Looks at the cells that are read for what only the whole sheet shows. */
  function look(
    { row, cells }: SheetRow,
    texts: readonly string[],
    { names, uses, hidden }: NonNullable<typeof header>,
  ) {
    for (const [at, use] of uses.entries()) {
      const cell = cells[at]
      if (use === undefined || cell === undefined || texts[at] === '') continue
      const column = names[at] ?? ''
      if (hidden[at] === true) faults.addHiddenColumn(column)
      if (cell.formula !== undefined) faults.addFormula(cell.formula, { row, column })
      if (use !== 'date') continue
      const day = 'value' in cell ? dayOf(cell.value, cell.format, workbook.is1904) : undefined
      if (day !== undefined) faults.addDate(day, { row, column })
      else if ('text' in cell) faults.addText(cell.text, { row, column })
    }
  }
}

function toText(cell: SheetCell, use: ColumnUse | undefined, rendering: Rendering): string {
  if ('value' in cell) return renderNumber(cell.value, cell.format, use ?? 'other', rendering)
  if ('truth' in cell) return use === 'text' ? unreadText('#TRUTH', String(cell.truth)) : String(cell.truth)
  const tokens = cell.format?.text
  if (tokens === undefined || use === undefined || (use !== 'text' && tokens.length > 0)) return cell.text
  return showText(cell.text, tokens)
}

/** Whether a merged range has cells of several rows, the last of them below the header. */
function spansRowsBelow(range: string, headerRow: number): boolean {
  const [, first = 0, last = 0] = /^[A-Z]+(\d+):[A-Z]+(\d+)$/.exec(range)?.map(Number) ?? []
  return last > first && last > headerRow
}

export interface FaultOptions {
  name: string
  hiddenRows: 'refuse' | 'skip' | 'read'
  dateCells: 'stored' | 'swapped' | undefined
}

/** The dates of one column. */
interface Dates {
  /** The first real date whose day could be the month, and how many there are. */
  first?: { row: number; day: string }
  swappable: number
  /** A real date whose day cannot be the month. */
  fixed?: { row: number; day: string }
  /** A text that only one order of day and month explains. */
  text?: { row: number; text: string }
}

/** A date as people type it, with day and month in front. */
const typedDate = /^\s*(\d{1,2})[-/.](\d{1,2})[-/.]\d{2}(\d{2})?(?!\d)/

/** Collects what makes a sheet another one than people see, and refuses it at its end. */
export function createSheetFaults({ name, hiddenRows, dateCells }: FaultOptions) {
  const rows: number[] = []
  const merges: string[] = []
  const columns = new Set<string>()
  const zeros: string[] = []
  let hasResults = false
  const dates = new Map<string, Dates>()
  const datesOf = (column: string): Dates => {
    const known = dates.get(column) ?? { swappable: 0 }
    dates.set(column, known)
    return known
  }
  return {
    addHiddenRow: (row: number) => rows.push(row),
    addMerge: (range: string) => merges.push(range),
    addHiddenColumn: (column: string) => columns.add(column),
    addFormula(formula: 'zero' | 'result', place: { row: number; column: string }) {
      if (formula === 'result') hasResults = true
      else zeros.push(`row ${place.row}, ${place.column}`)
    },
    addDate(day: string, { row, column }: { row: number; column: string }) {
      if (swap(day) === day) return
      const known = datesOf(column)
      if (!mayBeSwapped(day)) known.fixed ??= { row, day }
      else {
        known.first ??= { row, day }
        known.swappable += 1
      }
    },
    addText(text: string, { row, column }: { row: number; column: string }) {
      const [, first, second] = typedDate.exec(text)?.map(Number) ?? []
      if (first === undefined || second === undefined) return
      if (Math.max(first, second) > 12) datesOf(column).text ??= { row, text }
    },
    /** @throws {UnreadableFileError} @throws {MappingError} */
    refuse(): void {
      if (merges.length > 0)
        throw new UnreadableFileError(
          `${name} has merged cells below its header (${few(merges)}). Unmerge them, so that each row has its own values; if they are above the header, use --header-row.`,
        )
      if (rows.length > 0 && hiddenRows === 'refuse')
        throw new UnreadableFileError(
          `${name} has hidden rows, perhaps because of a filter (rows ${few(rows)}). Show them in the spreadsheet to import them, or leave them out with --skip-rows hidden.`,
        )
      if (columns.size > 0 && hiddenRows !== 'read')
        throw new UnreadableFileError(
          `${name} has values in hidden columns (${few([...columns])}). Show the columns in the spreadsheet to import them, or ignore each with --map "<column>=".`,
        )
      if (zeros.length > 0 && !hasResults)
        throw new UnreadableFileError(
          `${name} seems never to have been calculated: the result of each of its formulas is 0 or empty (${few(zeros, '; ')}). Open it in a spreadsheet and save it again.`,
        )
      for (const [column, of] of dates) refuseDates(column, of)
    },
  }

  function refuseDates(column: string, { first, swappable, fixed, text }: Dates): void {
    const place = `${name}, ${column}`
    if (dateCells === 'swapped' && fixed !== undefined)
      throw new MappingError(
        say`${place}: row ${fixed.row} has the date ${quote(fixed.day)}, whose day cannot be a month. Fix the dates in the spreadsheet instead of --date-cells swapped.`,
      )
    if (dateCells !== undefined || first === undefined || fixed !== undefined || text === undefined) return
    const { day, row } = first
    const all = swappable === 1 ? 'the only real date' : `all ${swappable} real dates`
    throw new MappingError(
      say`${place}: row ${text.row} has the text ${quote(text.text.trim())}, but ${all} could have day and month swapped, as happens when a spreadsheet opens a file of another language: row ${row} could mean ${quote(day)} or ${quote(swap(day))}. Use --date-cells stored if the sheet shows the right dates, or --date-cells swapped.`,
    )
  }
}

const mostNamed = 10
const few = (names: readonly (string | number)[], separator = ', ') =>
  names.length <= mostNamed
    ? names.join(separator)
    : `${names.slice(0, mostNamed).join(separator)} and ${names.length - mostNamed} more`
