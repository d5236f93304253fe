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

/** Times of the service as whole microseconds since 1970. */
export type Instant = number

/**
 * The instant of `2020-10-15T13:26:15.356289-03:00`, with or without a fraction, with `Z` or an offset; undefined for any
 * other value, and for one that a number does not hold exactly: before 1684 and after 2255, some with a fraction. Strings
 * with different offsets compare wrongly, and `Date` drops the microseconds. Fraction digits after the sixth are dropped.
 */
export function toInstant(text: unknown): Instant | undefined {
  const parts = toParts(text)
  if (parts === undefined) return undefined
  const [seconds, micros] = parts
  const instant = seconds + micros
  return instant - seconds === micros ? instant : undefined
}

/** The same of any time, however far from now, where times are only compared. */
export function toExactInstant(text: unknown): bigint | undefined {
  const parts = toParts(text)
  return parts && BigInt(parts[0]) + BigInt(parts[1])
}

/** The microseconds of whole seconds, which a number holds exactly until the year 9999, and the others. */
function toParts(text: unknown): [seconds: number, micros: number] | undefined {
  if (typeof text !== 'string' || !isTimestamp(text)) return undefined
  const dayText = text.slice(0, 10)
  // Neighbours in a list are mostly of the same day.
  if (dayText !== lastDay.text) lastDay = { text: dayText, millis: Date.parse(dayText) }
  const zoneAt = text.length - (text.endsWith('Z') ? 1 : 6)
  const micros = text[19] === '.' ? Number(text.slice(20, Math.min(zoneAt, 26)).padEnd(6, '0')) : 0
  const east = text[zoneAt] === 'Z' ? 0 : number(text, zoneAt + 1) * 60 + number(text, zoneAt + 4)
  const minutes = number(text, 11) * 60 + number(text, 14) - (text[zoneAt] === '-' ? -east : east)
  return [(lastDay.millis + minutes * 60_000 + number(text, 17) * 1000) * 1000, micros]
}
let lastDay = { text: '', millis: 0 }

/** `2020-10-15T16:26:15.356289Z` */
export function toTimestamp(instant: Instant): string {
  const micros = ((instant % 1_000_000) + 1_000_000) % 1_000_000
  const seconds = new Date((instant - micros) / 1000).toISOString()
  return seconds.replace('000Z', `${String(micros).padStart(6, '0')}Z`)
}
