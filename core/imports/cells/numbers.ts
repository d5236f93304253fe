import { Big } from 'big.js'

export type DecimalMark = ',' | '.'

export type NumberReading =
  /** In JSON's digits. `mark`: the only decimal mark with which it reads as a number. */
  | { number: string; mark?: DecimalMark }
  /** Two different numbers: first with a decimal point, then with a decimal comma. */
  | { readings: [string, string] }
  | Unreadable

/** A problem with a cell. `message` continues after the value: `45.890 is not a number`. */
export interface Unreadable {
  message: string
  /** The cell as it was most likely meant. */
  fix?: string
  /** The cell does not show its true value, so no fix may be guessed. */
  ambiguous?: true
}

const other = { ',': '.', '.': ',' } as const

/** Longest number in digits: far longer than any amount; sums of longer ones would take seconds per row. */
export const longestNumber = 100
export const tooLongNumber = `is too long: numbers have at most ${longestNumber} characters`

/**
 * Reads a number as a person wrote it: with or without thousands separators, with a decimal comma or point,
 * keeping every digit. Never guesses: without `decimal`, text that fits both marks (`45.890`) has two
 * readings.
 */
export function readNumber(cell: string, decimal?: DecimalMark): NumberReading {
  const text = cell.trim()
  if (text.length > longestNumber) return { message: tooLongNumber }
  // Most numbers of a file read the same in every notation.
  if (plainDigits.test(text)) return { number: text }
  const plain = readPlain(text, decimal)
  if (plain !== undefined) return plain
  if (scientific.test(text)) return explainScientific(text)
  if (decimal !== undefined) {
    const number = readWith(text, decimal)
    return number === undefined ? explain(text, decimal) : { number }
  }
  const [point, comma] = [readWith(text, '.'), readWith(text, ',')]
  if (point !== undefined && comma !== undefined)
    return point === comma ? { number: point } : { readings: [point, comma] }
  if (point !== undefined) return { number: point, mark: '.' }
  if (comma !== undefined) return { number: comma, mark: ',' }
  return explain(text, undefined)
}

/** Requires complete groups of three before the decimal mark and plain digits after it. */
function readWith(text: string, mark: DecimalMark): string | undefined {
  const parts = patterns[mark].exec(text)
  if (parts === null) return undefined
  const [, sign = '', whole = '', fraction = ''] = parts
  const digits = (whole.replaceAll(other[mark], '') || '0').replace(/^0+(?=\d)/, '')
  return `${sign === '-' ? '-' : ''}${digits}${fraction === '' ? '' : `.${fraction}`}`
}

const plainDigits = /^[1-9]\d*$/
/** Not three digits after the mark: those could be a group of thousands. */
const plainFraction = /^(0|[1-9]\d*)([.,])(\d\d?|\d{4,})$/

/** Reads the usual amount, `1234.50`, which has only one reading, at a third of the cost. */
function readPlain(text: string, decimal: DecimalMark | undefined): NumberReading | undefined {
  const parts = plainFraction.exec(text)
  if (parts === null) return undefined
  const [, whole, mark, fraction] = parts as unknown as [string, string, DecimalMark, string]
  if (decimal !== undefined && decimal !== mark) return undefined
  return { number: `${whole}.${fraction}`, ...(decimal === undefined && { mark }) }
}

const patternOf = (mark: string, group: string) =>
  new RegExp(`^([+-]?)(\\d+|[1-9]\\d{0,2}(?:\\${group}\\d{3})+|(?=\\${mark}\\d))(?:\\${mark}(\\d+))?$`)
const patterns = { ',': patternOf(',', '.'), '.': patternOf('.', ',') }

/** Writes a number in JSON's digits with another decimal mark. */
export const withMark = (number: string, mark: DecimalMark): string => number.replace('.', mark)

/** Decoration around numbers in spreadsheets. */
const decoration = /(?:US|MX|R)?\$|S\/\.?|[€%\s'’]|CLP|COP|MXN|BRL|PEN|USD|UF/giu

function explain(text: string, decimal: DecimalMark | undefined): Unreadable {
  // Accounting formats write (45), business systems 45-, and a zero as a dash.
  const accounting = /^\((.+)\)$/.exec(text)?.[1] ?? /^(.*\d)\s*-$/.exec(text)?.[1]
  const undecorated = (accounting === undefined ? text : `-${accounting}`)
    .replace(decoration, '')
    .replace(/^[−–]/, '-')
  const bare = undecorated === '-' ? '0' : undecorated
  const marks = decimal === undefined ? (['.', ','] as const) : [decimal]
  if (bare !== text && marks.some((mark) => readWith(bare, mark) !== undefined))
    return { message: text.includes('%') ? 'has a percent sign' : 'is not a plain number', fix: bare }
  if (decimal !== undefined && readWith(text, other[decimal]) !== undefined)
    return { message: `is not a number with a decimal ${decimal === ',' ? 'comma' : 'point'}` }
  return { message: 'is not a number' }
}

const scientific = /^[+-]?\d+(?:[.,]\d+)?e[+-]?\d{1,3}$/i

/** Matches how a spreadsheet shows a number too long for its column, ids included: `7,65E+08`. */
export const isScientific = (text: string): boolean => /^\s*[+-]?\d([.,]\d+)?E\+\d{2,3}\s*$/.test(text)

/**
 * No locale resolves scientific notation: the spreadsheet may have dropped digits, so every reading may be
 * wrong.
 */
export function explainScientific(text: string): Unreadable {
  const reading = new Big(text.trim().replace(',', '.').replace(/^\+/, '')).toFixed()
  return {
    message: `is in scientific notation: it reads as ${reading}, but its last digits may have been dropped. Format the column as plain numbers in the spreadsheet (as text, if they have more than 15 digits) and save the file again`,
    ambiguous: true,
  }
}
