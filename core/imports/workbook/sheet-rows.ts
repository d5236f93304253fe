import { unreadText } from '../cells/refused.ts'
import { InvalidFile } from '../errors.ts'
import { type CellFormat, parseFormat, serialOf } from './number-format.ts'
import type { Attributes, XmlEvent } from './parts.ts'
import { isTrue, unescapeText, type Workbook } from './workbook.ts'

/** A cell as stored. `zero`: a formula with the result 0 or nothing, in a workbook that may not be calculated. */
export type SheetCell = (
  | { text: string; format?: CellFormat | undefined }
  | { value: number; format: CellFormat }
  | { truth: boolean }
) & { formula?: 'zero' | 'result' }

export interface SheetRow {
  /** As the spreadsheet counts, from 1. */
  row: number
  isHidden: boolean
  /** By column index; missing cells are empty. */
  cells: (SheetCell | undefined)[]
}

/** What is known of a whole sheet: its hidden columns before its rows, its merged cells after them. */
export interface SheetFacts {
  /** By the index of the column. */
  isHidden: (column: number) => boolean
  /** Ranges such as `A5:A6`. */
  merges: string[]
}

const mostRows = 1_048_576

/** Far more than the fields and lines of one change. */
const mostColumns = 2_000

/** The smallest visible height of a row, in points, and width of a column, in characters. */
const leastSize = { row: 2, column: 0.5 }

type SheetContext = Pick<Workbook, 'strings' | 'formats' | 'calculation' | 'is1904'>

interface OpenCell {
  at: number
  type: string
  style: number
  hasFormula: boolean
  value: string | undefined
  inline: string
}

/**
 * The rows of a sheet, whose `facts` are filled in as they are met. Formulas are read as their stored results.
 * @throws {InvalidFile}
 */
export async function* readSheetRows(
  parts: AsyncIterable<XmlEvent[]>,
  { name, workbook, facts }: { name: string; workbook: SheetContext; facts: SheetFacts },
): AsyncGenerator<SheetRow> {
  let row: SheetRow = { row: 0, isHidden: false, cells: [] }
  let last = 0
  let cell: OpenCell | undefined
  let isPhonetic = false
  const hidden: [first: number, last: number, isHidden: boolean][] = []
  let isHiddenByDefault = { row: false, column: false }
  facts.isHidden = (column) =>
    hidden.find(([from, to]) => column >= from && column <= to)?.[2] ?? isHiddenByDefault.column
  const damaged = (reason: string): never => {
    throw new InvalidFile(`${name} is damaged: ${reason}. Save it again as .xlsx.`)
  }
  /** Some programs give the number of a row only in its cells, or not at all. */
  const numberRow = (number: number) => {
    if (!Number.isInteger(number) || number <= last || number > mostRows)
      damaged(`row ${number} follows row ${last}`)
    last = number
    row.row = number
  }

  function openCell({ r: reference, t: type = 'n', s: style = '0' }: Attributes): OpenCell {
    const place = placeOf(reference)
    if (row.row === 0) numberRow(place?.row ?? last + 1)
    if (place !== undefined && place.row !== row.row) damaged(`cell ${reference} is in row ${row.row}`)
    const at = place?.column ?? (cell === undefined ? 0 : cell.at + 1)
    return { at, type, style: Number(style), hasFormula: false, value: undefined, inline: '' }
  }

  function closeCell(closed: OpenCell) {
    const content = contentOf(closed, workbook, (reason) => damaged(`row ${row.row} ${reason}`))
    if (content === undefined) return
    if (closed.at >= mostColumns)
      throw new InvalidFile(
        `${name} has more than ${mostColumns.toLocaleString('en')} columns, which is the limit (row ${row.row}). Remove the columns that you do not import.`,
      )
    if (row.cells[closed.at] !== undefined) damaged(`row ${row.row} has the same cell twice`)
    row.cells[closed.at] = content
  }

  const opened: Readonly<Record<string, (attributes: Attributes) => void>> = {
    row({ hidden: isMarked, ht, r: number }) {
      const isHidden = isTrue(isMarked) || (ht === undefined ? isHiddenByDefault.row : isNothing('row', ht))
      row = { row: 0, isHidden, cells: [] }
      cell = undefined
      if (number !== undefined) numberRow(Number(number))
    },
    c: (attributes) => void (cell = openCell(attributes)),
    f: () => void (cell && (cell.hasFormula = true)),
    rPh: () => void (isPhonetic = true),
    mergeCell: ({ ref = '' }) => void facts.merges.push(ref),
    sheetFormatPr({ customHeight, defaultRowHeight, defaultColWidth }) {
      isHiddenByDefault = {
        row: isTrue(customHeight) && isNothing('row', defaultRowHeight),
        column: isNothing('column', defaultColWidth),
      }
    },
    col({ min, max, width, hidden: isMarked }) {
      hidden.push([Number(min) - 1, Number(max) - 1, isTrue(isMarked) || isNothing('column', width)])
    },
  }

  for await (const events of parts)
    for (const { element, attributes, text = '' } of events)
      if (attributes !== undefined) opened[element]?.(attributes)
      else if (element === 'v' && cell !== undefined) cell.value = text
      else if (element === 't' && cell !== undefined && !isPhonetic) cell.inline += text
      else if (element === 'rPh') isPhonetic = false
      else if (element === 'c' && cell !== undefined) closeCell(cell)
      else if (element === 'row') {
        if (row.row === 0) numberRow(last + 1)
        yield row
      }
}

const isNothing = (of: keyof typeof leastSize, size: string | undefined) =>
  size !== undefined && Number(size) < leastSize[of]

const general = parseFormat('General')
/** The format of a cell with an ISO 8601 date, which few programs write. */
const isoFormat = parseFormat('yyyy-mm-dd hh:mm:ss')

type Damaged = (reason: string) => never

function contentOf(cell: OpenCell, workbook: SheetContext, damaged: Damaged): SheetCell | undefined {
  const { type, value = '', hasFormula } = cell
  const result = resultOf(cell, workbook, damaged)
  if (!hasFormula || type === 'inlineStr') return result
  // Libraries store 0 for every formula, as a number or as a text.
  const isZero = value === '' || (type === 'n' ? Number(value) === 0 : type === 'str' && value === '0')
  const isMissing = cell.value === undefined || (value === '' && type === 'n')
  if (isMissing || (isZero && workbook.calculation === 'asked'))
    return { text: unreadText('#NOT CALCULATED') }
  if (workbook.calculation !== 'unknown' || result === undefined) return result
  return { ...result, formula: isZero ? 'zero' : 'result' }
}

function resultOf(
  { type, value = '', style, inline }: OpenCell,
  { strings, formats, is1904 }: SheetContext,
  damaged: Damaged,
): SheetCell | undefined {
  const format = formats[style]
  const toText = (text: string) => (text === '' ? undefined : { text, format })
  if (type === 'inlineStr') return toText(unescapeText(inline))
  if (type === 'str') return toText(unescapeText(value))
  if (value === '') return undefined
  if (type === 's')
    return toText(strings[Number(value)] ?? damaged(`refers to the text ${value}, which does not exist`))
  if (type === 'b') {
    if (!/^(0|1|true|false)$/i.test(value)) damaged(`has ${value} as a logical value`)
    return { truth: isTrue(value.toLowerCase()) }
  }
  if (type === 'e') return { text: value }
  if (type === 'd') {
    const number = serialOf(value, is1904)
    return number === undefined ? { text: value } : { value: number, format: isoFormat }
  }
  const number = Number(value)
  if (!Number.isFinite(number)) return { text: value, format }
  if (style > 0 && format === undefined) damaged(`has the style ${style}, which does not exist`)
  return { value: number, format: format ?? general }
}

/** The index of the column, from 0, and the row of a cell such as `AB12`. */
function placeOf(reference = ''): { column: number; row: number } | undefined {
  const [, letters = '', row] = /^([A-Z]{1,3})(\d+)$/i.exec(reference) ?? []
  if (row === undefined) return undefined
  let place = 0
  for (const letter of letters.toUpperCase()) place = place * 26 + letter.charCodeAt(0) - 64
  return { column: place - 1, row: Number(row) }
}
