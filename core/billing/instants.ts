const day = '(?!0000)\\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\\d|3[01])'
const clock = '(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?'
const offset = '(?:Z|[+-](?:0\\d|1[0-5]):[0-5]\\d)'
const datePattern = new RegExp(`^${day}$`)
const timestampPattern = new RegExp(`^${day}T${clock}${offset}$`)

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
const number = (text: string, at: number) => text.charCodeAt(at) * 10 + text.charCodeAt(at + 1) - 528
