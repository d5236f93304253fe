import { Big } from 'big.js'
import { isDate } from '../../billing/instants.ts'
import { InvalidMapping, quote, say } from '../errors.ts'
import type { Fault } from '../problems.ts'

export type DecimalMark = ',' | '.'

/** The value of a cell. `Way`: the notations that it may have. */
export type Reading<Way extends string> =
  /** A number in JSON's digits, or a date as YYYY-MM-DD. `way`: the only one in which it reads as one. */
  | { value: string; way?: Way }
  /** Two different values: first with a decimal point or day-first, then with a comma or month-first. */
  | { readings: [string, string] }
  | Fault

const other = { ',': '.', '.': ',' } as const

/** Longest number in digits: far longer than any amount; sums of longer ones would take seconds per row. */
export const longestNumber = 100
export const tooLongNumber = `is too long: numbers have at most ${longestNumber} characters`

/**
 * Reads a number as a person wrote it: with or without thousands separators, with a decimal comma or point,
 * keeping every digit. Never guesses: without `decimal`, text that fits both marks (`45.890`) has two
 * readings.
 */
export function readNumber(cell: string, decimal?: DecimalMark): Reading<DecimalMark> {
  const text = cell.trim()
  if (text.length > longestNumber) return { rule: 'number', message: tooLongNumber }
  if (scientific.test(text)) return explainScientific(text)
  if (decimal !== undefined) {
    const number = readWith(text, decimal)
    return number === undefined ? whyNoNumber(text, decimal) : { value: number }
  }
  const [point, comma] = [readWith(text, '.'), readWith(text, ',')]
  if (point !== undefined && comma !== undefined)
    return point === comma ? { value: point } : { readings: [point, comma] }
  if (point !== undefined) return { value: point, way: '.' }
  if (comma !== undefined) return { value: comma, way: ',' }
  return whyNoNumber(text, undefined)
}

/** Requires complete groups of three before the decimal mark and plain digits after it. */
function readWith(text: string, mark: DecimalMark): string | undefined {
  const parts = patterns[mark].exec(text)
  if (parts === null) return undefined
  const [, sign = '', whole = '', fraction = ''] = parts
  const digits = (whole.replaceAll(other[mark], '') || '0').replace(/^0+(?=\d)/, '')
  return `${sign === '-' ? '-' : ''}${digits}${fraction === '' ? '' : `.${fraction}`}`
}

const patternOf = (mark: string, group: string) =>
  new RegExp(`^([+-]?)(\\d+|[1-9]\\d{0,2}(?:\\${group}\\d{3})+|(?=\\${mark}\\d))(?:\\${mark}(\\d+))?$`)
const patterns = { ',': patternOf(',', '.'), '.': patternOf('.', ',') }

/** Writes a number in JSON's digits with another decimal mark. */
export const withMark = (number: string, mark: DecimalMark): string => number.replace('.', mark)

/** Decoration around numbers in spreadsheets. */
const decoration = /(?:US|MX|R)?\$|S\/\.?|[€%\s'’]|CLP|COP|MXN|BRL|PEN|USD|UF/giu

function whyNoNumber(text: string, decimal: DecimalMark | undefined): Fault {
  const rule = 'number'
  // Accounting formats write (45), business systems 45-, and a zero as a dash.
  const accounting = /^\((.+)\)$/.exec(text)?.[1] ?? /^(.*\d)\s*-$/.exec(text)?.[1]
  const undecorated = (accounting === undefined ? text : `-${accounting}`)
    .replace(decoration, '')
    .replace(/^[−–]/, '-')
  const bare = undecorated === '-' ? '0' : undecorated
  const marks = decimal === undefined ? (['.', ','] as const) : [decimal]
  if (bare !== text && marks.some((mark) => readWith(bare, mark) !== undefined))
    return { rule, message: text.includes('%') ? 'has a percent sign' : 'is not a plain number', fix: bare }
  if (decimal !== undefined && readWith(text, other[decimal]) !== undefined)
    return { rule, message: `is not a number with a decimal ${decimal === ',' ? 'comma' : 'point'}` }
  return { rule, message: 'is not a number' }
}

const scientific = /^[+-]?\d+(?:[.,]\d+)?e[+-]?\d{1,3}$/i

/** Matches how a spreadsheet shows a number too long for its column, ids included: `7,65E+08`. */
export const isScientific = (text: string): boolean => /^\s*[+-]?\d([.,]\d+)?E\+\d{2,3}\s*$/.test(text)

/**
 * No locale resolves scientific notation: the spreadsheet may have dropped digits, so every reading may be
 * wrong, and no fix is guessed.
 */
export function explainScientific(text: string): Fault {
  const reading = new Big(text.trim().replace(',', '.').replace(/^\+/, '')).toFixed()
  return {
    rule: 'ambiguous',
    message: `is in scientific notation: it reads as ${reading}, but its last digits may have been dropped. Format the column as plain numbers in the spreadsheet (as text, if they have more than 15 digits) and save the file again`,
    stops: true,
  }
}

export const dateOrders = ['dmy', 'mdy', 'ymd'] as const
export type DateOrder = (typeof dateOrders)[number]

const yearFirst = /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})$/
const yearLast = /^(\d{1,2})([-/.])(\d{1,2})\2(\d{4})$/
const midnight = /[T ]0{1,2}:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?$/
const localTime = /[T ]\d{1,2}:\d\d(:\d\d(\.\d+)?)?$/

/** Reads an existing calendar date. Without `order`, text that could be two days has two readings. */
export function readDate(cell: string, order?: DateOrder): Reading<DateOrder> {
  const text = cell.trim()
  const first = yearFirst.exec(text)
  if (first !== null) return existing(toDate(first[1], first[3], first[4]))
  const last = yearLast.exec(text)
  if (last === null) return whyNoDate(text, order)
  const [, day, , month, year] = last
  const days = { dmy: toDate(year, month, day), mdy: toDate(year, day, month) }
  if (order === 'ymd') return { rule: 'date', message: 'is not a date that begins with the year' }
  if (order !== undefined) return existing(days[order], days[order === 'dmy' ? 'mdy' : 'dmy'])
  if (days.dmy === days.mdy) return existing(days.dmy)
  const [dmy, mdy] = [isDate(days.dmy), isDate(days.mdy)]
  if (dmy && mdy) return { readings: [days.dmy, days.mdy] }
  if (dmy) return { value: days.dmy, way: 'dmy' }
  if (mdy) return { value: days.mdy, way: 'mdy' }
  return nonexistent
}

/** Formats a YYYY-MM-DD date in an order. */
export function writeDate(date: string, order: DateOrder): string {
  const [year, month, day] = date.split('-')
  return order === 'dmy' ? `${day}-${month}-${year}` : order === 'mdy' ? `${month}/${day}/${year}` : date
}

const toDate = (year = '', month = '', day = '') =>
  `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`

const nonexistent: Fault = { rule: 'date', message: 'is a date that does not exist' }

/** `swapped`: the same digits in the other order. */
function existing(date: string, swapped = ''): Reading<DateOrder> {
  if (isDate(date)) return { value: date }
  return isDate(swapped) ? { ...nonexistent, fix: swapped } : nonexistent
}

function whyNoDate(text: string, order: DateOrder | undefined): Fault {
  const rule = 'date'
  const withoutTime = text.replace(midnight, '').replace(localTime, '')
  if (withoutTime !== text) return { rule, message: 'has a time, but the field is a date', fix: withoutTime }
  if (/^\d{1,2}[-/.]\d{1,2}[-/.]\d{2}$/.test(text))
    return { rule, message: 'has a year of two digits. Write the year with four digits' }
  const day = dayOf(text)
  if (day !== undefined)
    return {
      rule,
      message: 'is the number of a day, as spreadsheets store dates',
      fix: writeDate(day, order ?? 'ymd'),
    }
  return { rule, message: `is not a date such as ${writeDate('2026-03-25', order ?? 'ymd')}` }
}

/** The date of a spreadsheet's day number, for the years 1990 to 2100; other numbers are not dates. */
function dayOf(text: string): string | undefined {
  const days = /^\d{5}(?:[.,]0+)?$/.test(text) ? Number.parseInt(text, 10) : 0
  if (days < 32_874 || days > 73_415) return undefined
  return new Date(Date.UTC(1899, 11, 30) + days * 86_400_000).toISOString().slice(0, 10)
}

/** How a file writes numbers and dates; undefined means undecided. */
export interface Conventions {
  decimal?: DecimalMark
  dates?: DateOrder
}

/**
 * The conventions of a locale: `es-CL` uses a decimal comma and puts the day first.
 * @throws {InvalidMapping} the locale is unknown
 */
export function conventionsOf(locale: string): Required<Conventions> {
  if (!isKnown(locale))
    throw new InvalidMapping(
      say`${quote(locale, 'The value of --locale')} is not a known locale. Use one such as es-CL, es-CO, es-MX or en-US, or set the fields decimal and dates with --input.`,
    )
  const mark = new Intl.NumberFormat(locale, { numberingSystem: 'latn' })
    .formatToParts(1.5)
    .find(({ type }) => type === 'decimal')?.value
  const parts = new Intl.DateTimeFormat(locale, { calendar: 'gregory' }).formatToParts(0)
  const order = parts.map(({ type }) => (['day', 'month', 'year'].includes(type) ? type[0] : '')).join('')
  return {
    decimal: mark === ',' ? ',' : '.',
    dates: order === 'dmy' || order === 'mdy' ? order : 'ymd',
  }
}

function isKnown(locale: string): boolean {
  try {
    return Intl.NumberFormat.supportedLocalesOf(locale).length > 0
  } catch {
    return false
  }
}
