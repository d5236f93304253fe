import { UnreadableFileError } from '../errors.ts'
import { type CellFormat, parseFormat } from './number-format.ts'
import { serialOf } from './render.ts'
import { unreadText } from '../cells/placeholders.ts'
import { isTrue, unescapeText, type Workbook } from './workbook.ts'
import { type Attributes, type ElementHandler, readXml } from './parts.ts'

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

/** A range of merged cells, such as `A5:A6`. */
export interface Merge {
  merged: string
}

/** What the whole sheet does not show. It comes before the rows. */
export interface HiddenColumns {
  /** By the index of the column. */
  isHidden: (column: number) => boolean
  hidesZeros: boolean
}

const mostRows = 1_048_576

/** Far more than the fields and lines of one change. */
const mostColumns = 2_000

/** Of a row in points, or of a column in characters: less shows nothing. */
const leastSize = { row: 2, column: 0.5 }

/**
 * The rows of a sheet, followed by its merged ranges. Formulas are read as their stored results.
 * @throws {UnreadableFileError}
 */
export function readSheetRows(
  chunks: AsyncIterable<Buffer>,
  name: string,
  workbook: SheetContext,
): AsyncGenerator<SheetRow | Merge | HiddenColumns> {
  return readXml<SheetRow | Merge | HiddenColumns>(chunks, name, (emit) =>
    createRowHandler(emit, name, workbook),
  )
}

type SheetContext = Pick<Workbook, 'strings' | 'formats' | 'calculation' | 'is1904'>

interface OpenCell {
  at: number
  type: string
  style: number
  hasFormula: boolean
  value: string | undefined
  inline: string
}

function createRowHandler(
  emit: (item: SheetRow | Merge | HiddenColumns) => void,
  name: string,
  workbook: SheetContext,
): ElementHandler {
  let last = 0
  let row: SheetRow = { row: 0, isHidden: false, cells: [] }
  let hasNumber = true
  let cell: OpenCell | undefined
  let isPhonetic = false
  const hidden: [first: number, last: number, isHidden: boolean][] = []
  let isHiddenByDefault = { row: false, column: false }
  let hidesZeros = false
  /** By column: the last row of an array formula, whose other cells have only results. */
  const arrayEnds: number[] = []
  const damaged = (reason: string): never => {
    throw new UnreadableFileError(`${name} is damaged: ${reason}. Save it again as .xlsx.`)
  }
  const damagedRow = (reason: string) => damaged(`row ${row.row} ${reason}`)
  const startRow = (number: number) => {
    if (!Number.isInteger(number) || number <= last || number > mostRows)
      damaged(`row ${number} follows row ${last}`)
    last = number
    row.row = number
  }
  return {
    open(element, attributes) {
      if (element === 'c') {
        const { r: reference } = attributes
        const place = reference === undefined ? undefined : placeOf(reference)
        if (place !== undefined && !hasNumber) startRow(place.row)
        hasNumber = true
        if (place !== undefined && place.row !== row.row) damaged(`cell ${reference} is in row ${row.row}`)
        const at = place?.column ?? (cell === undefined ? 0 : cell.at + 1)
        cell = {
          at,
          type: attributes['t'] ?? 'n',
          style: Number(attributes['s'] ?? 0),
          hasFormula: (arrayEnds[at] ?? 0) >= row.row,
          value: undefined,
          inline: '',
        }
      } else if (element === 'row') {
        row = { row: last + 1, isHidden: isHiddenRow(attributes), cells: [] }
        hasNumber = attributes['r'] !== undefined
        if (hasNumber) startRow(Number(attributes['r']))
      } else if (element === 'f' && cell !== undefined) {
        cell.hasFormula = true
        const { column = 0, row: end = 0 } = placeOf(attributes['ref']?.split(':')[1]) ?? {}
        if (attributes['t'] === 'array' || attributes['t'] === 'dataTable')
          for (let at = cell.at; at <= Math.min(column, mostColumns); at++)
            arrayEnds[at] = Math.max(arrayEnds[at] ?? 0, end)
      } else if (element === 'rPh') isPhonetic = true
      else if (element === 'mergeCell') emit({ merged: attributes['ref'] ?? '' })
      else if (element === 'sheetView') hidesZeros ||= !isTrue(attributes['showZeros'] ?? '1')
      else if (element === 'sheetFormatPr')
        isHiddenByDefault = {
          row: isTrue(attributes['customHeight']) && isNothing('row', attributes['defaultRowHeight']),
          column: isNothing('column', attributes['defaultColWidth']),
        }
      else if (element === 'col') {
        const { min, max, width } = attributes
        hidden.push([
          Number(min) - 1,
          Number(max) - 1,
          isTrue(attributes['hidden']) || isNothing('column', width),
        ])
      } else if (element === 'sheetData')
        emit({
          hidesZeros,
          isHidden: (column) =>
            hidden.find(([from, to]) => column >= from && column <= to)?.[2] ?? isHiddenByDefault.column,
        })
    },
    close(element, text) {
      if (element === 'v' && cell !== undefined) cell.value = text
      else if (element === 't' && cell !== undefined && !isPhonetic) cell.inline += text
      else if (element === 'rPh') isPhonetic = false
      else if (element === 'c' && cell !== undefined) {
        const content = contentOf(cell, workbook, damagedRow)
        if (content === undefined) return
        if (cell.at >= mostColumns)
          throw new UnreadableFileError(
            `${name} has more than ${mostColumns.toLocaleString('en')} columns, which is the limit (row ${row.row}). Remove the columns that you do not import.`,
          )
        if (row.cells[cell.at] !== undefined) damaged(`row ${row.row} has the same cell twice`)
        row.cells[cell.at] = content
      } else if (element === 'row') {
        if (!hasNumber) startRow(last + 1)
        cell = undefined
        emit(row)
      }
    },
  }

  function isHiddenRow({ hidden: isMarked, ht }: Attributes): boolean {
    return isTrue(isMarked) || (ht === undefined ? isHiddenByDefault.row : isNothing('row', ht))
  }
}

const isNothing = (of: keyof typeof leastSize, size: string | undefined) =>
  size !== undefined && Number(size) < leastSize[of]

const general = parseFormat('General')
/** Of a date in ISO 8601, which few programs write. */
const isoFormat = parseFormat('yyyy-mm-dd hh:mm:ss')

function contentOf(
  cell: OpenCell,
  workbook: SheetContext,
  damaged: (reason: string) => never,
): SheetCell | undefined {
  const { type, value = '', hasFormula } = cell
  if (!hasFormula || type === 'inlineStr') return resultOf(cell, workbook, damaged)
  // Libraries store 0 for every formula, as a number or as a text.
  const isZero = value === '' || (type === 'n' ? Number(value) === 0 : type === 'str' && value === '0')
  const isMissing = cell.value === undefined || (value === '' && type === 'n')
  if (isMissing || (isZero && workbook.calculation === 'asked'))
    return { text: unreadText('#NOT CALCULATED') }
  const result = resultOf(cell, workbook, damaged)
  if (workbook.calculation !== 'unknown' || result === undefined) return result
  return { ...result, formula: isZero ? 'zero' : 'result' }
}

function resultOf(
  { type, value = '', style, inline }: OpenCell,
  { strings, formats, is1904 }: SheetContext,
  damaged: (reason: string) => never,
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
function placeOf(reference: string | undefined): { column: number; row: number } | undefined {
  const [, letters = '', row] = /^([A-Z]{1,3})(\d+)$/i.exec(reference ?? '') ?? []
  if (row === undefined) return undefined
  let place = 0
  for (const letter of letters.toUpperCase()) place = place * 26 + letter.charCodeAt(0) - 64
  return { column: place - 1, row: Number(row) }
}
