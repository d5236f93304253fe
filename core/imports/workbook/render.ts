import { Big } from 'big.js'
import { writeDate } from '../cells/dates.ts'
import type { Conventions } from '../cells/locale.ts'
import { withMark } from '../cells/numbers.ts'
import type { NumberFormat } from './number-format.ts'

/** Numbers are doubles: a spreadsheet shows the first 15 digits and none of the noise after them. */
const shownDigits = 15

const secondsPerDay = 86_400
const lastDay = 2_958_465

/**
 * Formats a workbook's number as a person would type it under the import's conventions, so that reading it
 * back gives exactly this number or date.
 */
export function renderNumber(
  value: number,
  format: NumberFormat,
  { decimal, dates, is1904 }: Conventions & { is1904: boolean },
): string {
  if (format === 'number') return renderPlain(value, decimal)
  if (format === 'percent') return `${renderPlain(toDigits(value).times(100).toNumber(), decimal)}%`
  const seconds = Math.round(value * secondsPerDay)
  const days = Math.floor(seconds / secondsPerDay)
  const time = new Date((seconds - days * secondsPerDay) * 1000).toISOString().slice(11, 19)
  const isTime = format === 'time' && days === 0
  if (isTime) return time
  if (format === 'time' || days < (is1904 ? 0 : 1) || days > lastDay) return renderPlain(value, decimal)
  const date = writeDate(toDay(days, is1904), dates ?? 'ymd')
  return time === '00:00:00' ? date : `${date} ${time}`
}

const toDigits = (value: number) => new Big(value.toPrecision(shownDigits))

function renderPlain(value: number, decimal: Conventions['decimal']): string {
  // Beyond 15 digits before the point, the typed digits are lost. The cell reader rejects this form.
  if (Math.abs(value) >= 10 ** shownDigits)
    return withMark(value.toExponential(shownDigits - 1).replace('e', 'E'), decimal ?? '.')
  const digits = toDigits(value).toFixed()
  if (decimal !== undefined) return withMark(digits, decimal)
  // 45.123 would have two readings; 45.1230 is the same number and has one.
  return /^-?[1-9]\d{0,2}\.\d{3}$/.test(digits) ? `${digits}0` : digits
}

/**
 * The date of a serial number. The 1900 system counts a 29 February 1900 that did not exist, so earlier days
 * are off by one.
 */
function toDay(days: number, is1904: boolean): string {
  const epoch = is1904 ? Date.UTC(1904, 0, 1) : Date.UTC(1899, 11, days < 60 ? 31 : 30)
  return new Date(epoch + days * secondsPerDay * 1000).toISOString().slice(0, 10)
}
