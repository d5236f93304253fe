import { Big } from 'big.js'

export type DecimalMark = ',' | '.'

export type NumberReading =
  /** In JSON's digits. `mark`: the only decimal mark under which it reads at all. */
  | { number: string; mark?: DecimalMark }
  /** It reads with both marks, as two numbers: the first with the point, the second with the comma. */
  | { readings: [string, string] }
  | NotRead
export interface NotRead {
  wrong: string
  /** What was most likely meant, as the cell would have to be written. */
  fix?: string
  /** It may be a value that can't be seen from here, as in two readings. */
  ambiguous?: true
}

const other = { ',': '.', '.': ',' } as const

/** Far longer than any amount; sums of longer ones would take seconds a row. */
export const longestNumber = 100
export const tooLongNumber = `is longer than any number: at most ${longestNumber} characters are read`

/**
 * Reads a number as a person wrote it: grouped or not, with a decimal comma or point, every digit kept. Nothing is
 * guessed: without `decimal`, a text that both marks can read (`45.890`) has two readings.
 */
export function readNumber(cell: string, decimal?: DecimalMark): NumberReading {
  const text = cell.trim()
  if (text.length > longestNumber) return { wrong: tooLongNumber }
  if (scientific.test(text)) return aboutScientific(text)
  if (decimal !== undefined) {
    const number = readWith(text, decimal)
    return number === undefined ? aboutWrong(text, decimal) : { number }
  }
  const [point, comma] = [readWith(text, '.'), readWith(text, ',')]
  if (point !== undefined && comma !== undefined)
    return point === comma ? { number: point } : { readings: [point, comma] }
  if (point !== undefined) return { number: point, mark: '.' }
  if (comma !== undefined) return { number: comma, mark: ',' }
  return aboutWrong(text, undefined)
}

/** Whole groups of three, none of which is left out, before the decimal mark; digits only behind it. */
function readWith(text: string, mark: DecimalMark): string | undefined {
  // Most numbers of a file have nothing in them to tell apart.
  if (plainDigits.test(text)) return text
  const parts = patterns[mark].exec(text)
  if (parts === null) return undefined
  const [, sign = '', whole = '', fraction = ''] = parts
  const digits = (whole.replaceAll(other[mark], '') || '0').replace(/^0+(?=\d)/, '')
  return `${sign === '-' ? '-' : ''}${digits}${fraction === '' ? '' : `.${fraction}`}`
}

const plainDigits = /^[1-9]\d*$/
const patternOf = (mark: string, group: string) =>
  new RegExp(`^([+-]?)(\\d+|[1-9]\\d{0,2}(?:\\${group}\\d{3})+|(?=\\${mark}\\d))(?:\\${mark}(\\d+))?$`)
const patterns = { ',': patternOf(',', '.'), '.': patternOf('.', ',') }

/** Writes a number in JSON's digits with another decimal mark. */
export const withMark = (number: string, mark: DecimalMark): string => number.replace('.', mark)

/** What people put around a number. */
const around = /[$€\s'’]|CLP|COP|MXN|USD|UF/giu

function aboutWrong(text: string, decimal: DecimalMark | undefined): NotRead {
  const accounting = /^\((.+)\)$/.exec(text)?.[1]
  const bare = (accounting === undefined ? text : `-${accounting}`).replace(around, '')
  const marks = decimal === undefined ? (['.', ','] as const) : [decimal]
  if (bare !== text && marks.some((mark) => readWith(bare, mark) !== undefined))
    return { wrong: 'is not a plain number', fix: bare }
  if (decimal !== undefined && readWith(text, other[decimal]) !== undefined)
    return { wrong: `is not a number with a decimal ${decimal === ',' ? 'comma' : 'point'}` }
  return { wrong: 'is not a number' }
}

const scientific = /^[+-]?\d+(?:[.,]\d+)?e[+-]?\d{1,3}$/i

/** As a spreadsheet shows a number that is too long for its column, also an id: `7,65E+08`. */
export const isScientific = (text: string): boolean => /^\s*[+-]?\d([.,]\d+)?E\+\d{2,3}\s*$/.test(text)

/** No locale decides this one: the spreadsheet may have hidden digits, and then no reading is right. */
export function aboutScientific(text: string): NotRead {
  const reading = new Big(text.trim().replace(',', '.').replace(/^\+/, '')).toFixed()
  return {
    wrong: `is in scientific notation: it reads as ${reading}, or as a number whose last digits were hidden. Show the column as plain numbers in the spreadsheet and save again`,
    ambiguous: true,
  }
}
