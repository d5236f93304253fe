import { UnreadableFileError } from '../errors.ts'
import { type ElementHandler, readXml } from './xml.ts'
import { isTrue, unescapeText, type Workbook } from './workbook.ts'

/** A cell as stored. */
export type SheetCell = { text: string } | { value: number; style: number }

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

const mostRows = 1_048_576

/** Far more than the fields and lines of one change. */
const mostColumns = 2_000

/** Shown for a formula without a stored result: only a spreadsheet could compute it. */
export const notCalculated = '#NOT CALCULATED'

/**
 * The rows of a sheet, followed by its merged ranges. Formulas are read as their stored results.
 * @throws {UnreadableFileError}
 */
export function readSheetRows(
  chunks: AsyncIterable<Buffer>,
  name: string,
  { strings }: Pick<Workbook, 'strings'>,
): AsyncGenerator<SheetRow | Merge> {
  return readXml<SheetRow | Merge>(chunks, name, (emit) => createRowHandler(emit, name, strings))
}

interface OpenCell {
  at: number
  type: string
  style: number
  hasFormula: boolean
  value: string | undefined
  inline: string
}

function createRowHandler(
  emit: (item: SheetRow | Merge) => void,
  name: string,
  strings: readonly string[],
): ElementHandler {
  let last = 0
  let row: SheetRow = { row: 0, isHidden: false, cells: [] }
  let cell: OpenCell | undefined
  let isPhonetic = false
  return {
    open(element, attributes) {
      if (element === 'row') {
        const number = attributes['r'] === undefined ? last + 1 : Number(attributes['r'])
        if (!Number.isInteger(number) || number <= last || number > mostRows)
          throw new UnreadableFileError(`${name} is damaged: row ${number} follows row ${last}.`)
        last = number
        row = { row: number, isHidden: isTrue(attributes['hidden']), cells: [] }
      } else if (element === 'c')
        cell = {
          at: placeOf(attributes['r'], cell?.at),
          type: attributes['t'] ?? 'n',
          style: Number(attributes['s'] ?? 0),
          hasFormula: false,
          value: undefined,
          inline: '',
        }
      else if (element === 'f' && cell !== undefined) cell.hasFormula = true
      else if (element === 'rPh') isPhonetic = true
      else if (element === 'mergeCell') emit({ merged: attributes['ref'] ?? '' })
    },
    close(element, text) {
      if (element === 'v' && cell !== undefined) cell.value = text
      else if (element === 't' && cell !== undefined && !isPhonetic) cell.inline += text
      else if (element === 'rPh') isPhonetic = false
      else if (element === 'c' && cell !== undefined) {
        const content = contentOf(cell, strings)
        if (content !== undefined && cell.at >= mostColumns)
          throw new UnreadableFileError(
            `${name} has more than ${mostColumns.toLocaleString('en')} columns, which is the limit (row ${row.row}). Remove the columns that you do not import.`,
          )
        if (content !== undefined) row.cells[cell.at] = content
      } else if (element === 'row') {
        cell = undefined
        emit(row)
      }
    },
  }
}

function contentOf(cell: OpenCell, strings: readonly string[]): SheetCell | undefined {
  const { type, value = '', style, hasFormula, inline } = cell
  if (type === 'inlineStr') return toText(unescapeText(inline))
  if (hasFormula && (cell.value === undefined || (value === '' && type === 'n')))
    return { text: notCalculated }
  if (type === 'str') return toText(unescapeText(value))
  if (value === '') return undefined
  if (type === 's') return toText(strings[Number(value)] ?? '')
  if (type === 'b') return { text: isTrue(value) ? 'true' : 'false' }
  if (type === 'e') return { text: value }
  // A date in ISO 8601, which few programs write.
  if (type === 'd') return { text: value.replace(/T00:00:00(\.0+)?$/, '').replace('T', ' ') }
  const number = Number(value)
  return Number.isFinite(number) ? { value: number, style } : { text: value }
}

const toText = (text: string) => (text === '' ? undefined : { text })

/**
 * The column index, from 0, of a cell such as `AB12`; without a reference, the one after the previous cell.
 */
function placeOf(reference: string | undefined, before = -1): number {
  const letters = /^[A-Z]{1,3}(?=\d)/.exec(reference ?? '')?.[0]
  if (letters === undefined) return before + 1
  let place = 0
  for (const letter of letters) place = place * 26 + letter.charCodeAt(0) - 64
  return place - 1
}
