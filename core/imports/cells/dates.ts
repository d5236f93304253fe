import { isDate } from '../../billing/instants.ts'
import type { Unreadable } from './numbers.ts'

export const dateOrders = ['dmy', 'mdy', 'ymd'] as const
export type DateOrder = (typeof dateOrders)[number]

export type DateReading =
  /** As YYYY-MM-DD. `order`: the only order, day or month first, in which it reads as a date. */
  | { date: string; order?: DateOrder }
  /** Two different days: first day-first, then month-first. */
  | { readings: [string, string] }
  | Unreadable

const yearFirst = /^(\d{4})([-/.])(\d{1,2})\2(\d{1,2})$/
const yearLast = /^(\d{1,2})([-/.])(\d{1,2})\2(\d{4})$/
const midnight = /[T ]0{1,2}:00(:00(\.0+)?)?(Z|[+-]\d\d:?\d\d)?$/
const localTime = /[T ]\d{1,2}:\d\d(:\d\d(\.\d+)?)?$/

/** Reads an existing calendar date. Without `order`, text that could be two days has two readings. */
export function readDate(cell: string, order?: DateOrder): DateReading {
  const text = cell.trim()
  const first = yearFirst.exec(text)
  if (first !== null) return existing(toDate(first[1], first[3], first[4]))
  const last = yearLast.exec(text)
  if (last === null) return explain(text, order)
  const [, day, , month, year] = last
  const days = { dmy: toDate(year, month, day), mdy: toDate(year, day, month) }
  if (order === 'ymd') return { message: 'is not a date that begins with the year' }
  if (order !== undefined) return existing(days[order], days[order === 'dmy' ? 'mdy' : 'dmy'])
  if (days.dmy === days.mdy) return existing(days.dmy)
  const [dmy, mdy] = [isDate(days.dmy), isDate(days.mdy)]
  if (dmy && mdy) return { readings: [days.dmy, days.mdy] }
  if (dmy) return { date: days.dmy, order: 'dmy' }
  if (mdy) return { date: days.mdy, order: 'mdy' }
  return { message: nonexistent }
}

/** Formats a YYYY-MM-DD date in an order. */
export function writeDate(date: string, order: DateOrder): string {
  const [year, month, day] = date.split('-')
  return order === 'dmy' ? `${day}-${month}-${year}` : order === 'mdy' ? `${month}/${day}/${year}` : date
}

const toDate = (year = '', month = '', day = '') =>
  `${year}-${month.padStart(2, '0')}-${day.padStart(2, '0')}`

const nonexistent = 'is a date that does not exist'

/** `swapped`: the same digits in the other order. */
function existing(date: string, swapped = ''): DateReading {
  if (isDate(date)) return { date }
  return isDate(swapped) ? { message: nonexistent, fix: swapped } : { message: nonexistent }
}

function explain(text: string, order: DateOrder | undefined): Unreadable {
  const withoutTime = text.replace(midnight, '').replace(localTime, '')
  if (withoutTime !== text) return { message: 'has a time, but the field is a date', fix: withoutTime }
  if (/^\d{1,2}[-/.]\d{1,2}[-/.]\d{2}$/.test(text))
    return { message: 'has a year of two digits. Write the year with four digits' }
  const day = dayOf(text)
  if (day !== undefined)
    return {
      message: 'is the number of a day, as spreadsheets store dates',
      fix: writeDate(day, order ?? 'ymd'),
    }
  return { message: `is not a date such as ${writeDate('2026-03-25', order ?? 'ymd')}` }
}

/** The date of a spreadsheet's day number, for the years 1990 to 2100; other numbers are not dates. */
function dayOf(text: string): string | undefined {
  const days = /^\d{5}(?:[.,]0+)?$/.test(text) ? Number.parseInt(text, 10) : 0
  if (days < 32_874 || days > 73_415) return undefined
  return new Date(Date.UTC(1899, 11, 30) + days * 86_400_000).toISOString().slice(0, 10)
}
