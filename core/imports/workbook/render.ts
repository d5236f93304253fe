import { Big } from 'big.js'
import { type Conventions, withMark, writeDate } from '../cells/notation.ts'
import { type CellFormat, type NumberFormat, sectionOf, showNumber } from './number-format.ts'
import { unreadText } from '../cells/placeholders.ts'

/** What the field of a column holds; `other`: anything else, or a column that is not read. */
export type ColumnUse = 'text' | 'number' | 'date' | 'other'

export interface Rendering extends Conventions {
  is1904: boolean
  /** Real dates have day and month swapped where both are at most 12. */
  swapsDates?: boolean
}

/** Numbers are doubles: a spreadsheet shows the first 15 digits and none of the noise after them. */
const shownDigits = 15

const secondsPerDay = 86_400
const lastDay = 2_958_465

/**
 * A workbook's number for a column: in a column of text as the sheet shows it, otherwise as a person would
 * type it under the import's conventions, so that reading it back gives exactly this number or date.
 */
export function renderNumber(value: number, of: CellFormat, use: ColumnUse, rendering: Rendering): string {
  const { section, minus } = sectionOf(of, value)
  const { format, tokens } = section
  const { decimal } = rendering
  if (format !== 'number' && format !== 'percent') {
    const text = renderDay(value, format, use, rendering)
    return use === 'text' || use === 'number' ? unreadText('#DATE', text) : text
  }
  if (use === 'text' && Math.abs(value) < 10 ** shownDigits)
    return showNumber(toDigits(value), section, { minus, decimal })
  if (use !== 'other' && value !== 0 && tokens?.length === 0)
    return unreadText('#NOT SHOWN', renderPlain(value, decimal))
  if (format === 'percent') return `${renderPlain(toDigits(value).times(100).toNumber(), decimal)}%`
  if (use === 'number' && losesDigits(value))
    return unreadText('#DIGITS', withMark(new Big(value).toFixed(), decimal ?? '.'))
  return renderPlain(value, decimal)
}

function renderDay(value: number, format: NumberFormat, use: ColumnUse, rendering: Rendering): string {
  const { decimal, dates, is1904, swapsDates = false } = rendering
  const seconds = Math.round(value * secondsPerDay)
  const days = Math.floor(seconds / secondsPerDay)
  const time = new Date((seconds - days * secondsPerDay) * 1000).toISOString().slice(11, 19)
  if (format === 'time' && days === 0) return time
  if (format === 'time' || days < (is1904 ? 0 : 1) || days > lastDay) return renderPlain(value, decimal)
  const day = toDay(days, is1904)
  const swapped = swapsDates && use === 'date' && mayBeSwapped(day) ? swap(day) : day
  const date = writeDate(swapped, dates ?? 'ymd')
  return time === '00:00:00' ? date : `${date} ${time}`
}

/** Whether a day is also one with its month as the day. */
export const mayBeSwapped = (date: string): boolean => Number(date.slice(8)) <= 12

/** 4 March as 3 April. */
export const swap = (date: string): string => `${date.slice(0, 4)}-${date.slice(8)}-${date.slice(5, 7)}`

/** The real date in a cell, as YYYY-MM-DD; undefined for other numbers. */
export function dayOf(value: number, of: CellFormat, is1904: boolean): string | undefined {
  const { format } = sectionOf(of, value).section
  const days = Math.floor(value)
  if ((format !== 'date' && format !== 'dateTime') || days < 1 || days > lastDay) return undefined
  return toDay(days, is1904)
}

const toDigits = (value: number) => new Big(value.toPrecision(shownDigits))

/** From here on, 15 digits have no place for a fourth decimal. */
const fewDecimals = 10 ** 11
/** Less than half of a fourth, and of a third decimal. */
const [little, muchForNoise] = [0.00005, 0.0005]

/**
 * Whether 15 digits are too few for a number. In a smaller number they change only what no amount has: the
 * noise of arithmetic (`0.30000000000000004`) and endless decimals (a third). In a larger one the change may
 * be of real digits, unless no number lies between the two.
 */
function losesDigits(value: number): boolean {
  const size = Math.abs(value)
  if (size < fewDecimals || size >= 10 ** shownDigits || Number.isInteger(size)) return false
  const loss = Math.abs(size - Number(size.toPrecision(shownDigits)))
  const step = 2 ** (Math.floor(Math.log2(size)) - 52)
  return loss >= little && (loss > step || loss >= muchForNoise)
}

function renderPlain(value: number, decimal: Conventions['decimal']): string {
  // Beyond 15 digits before the point, the typed digits are lost. The cell reader rejects this form.
  if (Math.abs(value) >= 10 ** shownDigits)
    return withMark(value.toExponential(shownDigits - 1).replace('e', 'E'), decimal ?? '.')
  const digits = toDigits(value).toFixed()
  if (decimal !== undefined) return withMark(digits, decimal)
  // 45.123 would have two readings; 45.1230 is the same number and has one.
  return /^-?[1-9]\d{0,2}\.\d{3}$/.test(digits) ? `${digits}0` : digits
}

/** The serial number of a date in ISO 8601, whatever its time zone; undefined for any other text. */
export function serialOf(text: string, is1904: boolean): number | undefined {
  if (!/^\d{4}-\d\d-\d\d(T[\d:.]+)?Z?$/.test(text)) return undefined
  const days = Date.parse(`${text.replace('Z', '')}${text.includes('T') ? 'Z' : ''}`) / (secondsPerDay * 1000)
  const serial =
    days - Date.UTC(is1904 ? 1904 : 1899, is1904 ? 0 : 11, is1904 ? 1 : 30) / (secondsPerDay * 1000)
  return serial >= 61 && serial <= lastDay ? serial : undefined
}

/**
 * The date of a serial number. The 1900 system counts a 29 February 1900 that did not exist, so earlier days
 * are off by one.
 */
function toDay(days: number, is1904: boolean): string {
  const epoch = is1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, days < 60 ? 31 : 30)
  return new Date(epoch + days * secondsPerDay * 1000).toISOString().slice(0, 10)
}
