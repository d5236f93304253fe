const day = '(?!0000)\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])'
const time = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?'
const zone = '(?:Z|[+-](?:0\\d|1[0-5]):[0-5]\\d)'
const datePattern = new RegExp(`^${day}$`)
const timestampPattern = new RegExp(`^${day}T${time}${zone}$`)

/** Whether a text is an existing calendar date as YYYY-MM-DD, from the year 1 on (as in PostgreSQL). */
export const isDate = (text: string) => datePattern.test(text) && isInMonth(text)

/** Whether a text is an ISO 8601 timestamp, to the second or finer, with its offset (at most 15:59) or Z. */
export const isTimestamp = (text: string) => timestampPattern.test(text) && isInMonth(text)

const daysIn = [0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]

/** Whether the month of a well-formed date has that day: 2023-02-29 does not exist. */
function isInMonth(text: string): boolean {
  const dayOfMonth = number(text, 8)
  if (dayOfMonth <= 28) return true
  const month = number(text, 5)
  if (month !== 2) return dayOfMonth <= daysIn[month]!
  const year = number(text, 0) * 100 + number(text, 2)
  return dayOfMonth === 29 && year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0)
}

/** Parses the two digits at an index. */
const number = (text: string, index: number) => text.charCodeAt(index) * 10 + text.charCodeAt(index + 1) - 528

/**
 * Times of the service as whole microseconds since 1970, which stay below 2^53 until the year 2255.
 *
 * Parsed by hand because every record needs it: strings with different offsets compare wrongly, and `Date` drops the
 * microseconds and takes 4 times as long.
 */
export type Instant = number

const zero = 48
const dash = 45
const plus = 43
const colon = 58
const dot = 46

function digits(text: string, from: number, to: number): number {
  let value = 0
  for (let at = from; at < to; at++) {
    const digit = text.charCodeAt(at) - zero
    if (!(digit >= 0 && digit <= 9)) return NaN
    value = value * 10 + digit
  }
  return value
}

function daysSince1970(year: number, month: number, day: number): number {
  // `Date.UTC` maps years below 100 to the 20th century.
  const date = new Date(0)
  const days = date.setUTCFullYear(year, month - 1, day) / 86_400_000
  return date.getUTCMonth() === month - 1 && date.getUTCDate() === day ? days : NaN
}

// Cached, because neighbours in a list are mostly of the same day.
let lastDate = NaN
let lastDays = NaN

/** The offset at the end of `text`, from `at` on, in seconds east of UTC; NaN if it is not an offset. */
function offset(text: string, at: number): number {
  const sign = text.charCodeAt(at)
  if (text.length === at + 1) return text[at] === 'Z' ? 0 : NaN
  if (text.length !== at + 6 || text.charCodeAt(at + 3) !== colon) return NaN
  if (sign !== dash && sign !== plus) return NaN
  const hours = digits(text, at + 1, at + 3)
  const minutes = digits(text, at + 4, at + 6)
  if (!(hours <= 23 && minutes <= 59)) return NaN
  return (sign === dash ? -60 : 60) * (hours * 60 + minutes)
}

function dayOf(text: string): number {
  if (text.charCodeAt(4) !== dash || text.charCodeAt(7) !== dash || text[10] !== 'T') return NaN
  const [year, month, day] = [digits(text, 0, 4), digits(text, 5, 7), digits(text, 8, 10)]
  const date = year * 10_000 + month * 100 + day
  if (date === lastDate) return lastDays
  lastDate = date
  lastDays = daysSince1970(year, month, day)
  return lastDays
}

/**
 * The instant of `2020-10-15T13:26:15.356289-03:00`, with or without a fraction, with `Z` or an offset;
 * undefined for any other value. Fraction digits after the sixth are dropped.
 */
export function toInstant(text: unknown): Instant | undefined {
  if (typeof text !== 'string' || text.charCodeAt(13) !== colon || text.charCodeAt(16) !== colon)
    return undefined
  const hours = digits(text, 11, 13)
  const minutes = digits(text, 14, 16)
  const seconds = digits(text, 17, 19)
  if (!(hours <= 23 && minutes <= 59 && seconds <= 59)) return undefined
  let at = 19
  let micros = 0
  if (text.charCodeAt(at) === dot) {
    const from = ++at
    while (text.charCodeAt(at) >= zero && text.charCodeAt(at) <= zero + 9) at++
    if (at === from) return undefined
    const known = Math.min(at, from + 6)
    micros = digits(text, from, known) * 10 ** (6 - (known - from))
  }
  const value =
    (dayOf(text) * 86_400 + hours * 3600 + minutes * 60 + seconds - offset(text, at)) * 1e6 + micros
  return Number.isNaN(value) ? undefined : value
}

/** `2020-10-15T16:26:15.356289Z` */
export function toTimestamp(instant: Instant): string {
  const millis = Math.floor(instant / 1000)
  const micros = instant - millis * 1000
  return new Date(millis).toISOString().replace('Z', `${String(micros).padStart(3, '0')}Z`)
}
