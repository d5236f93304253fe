/**
 * Instants are microseconds since 1970 as one number: a Date drops the microseconds of the service's
 * timestamps, and a double holds them exactly until the year 2255.
 */
export const SECOND = 1_000_000
export const DAY = 86_400 * SECOND

/**
 * Chile's clock: -03:00 in summer; -04:00 from April's first Sunday to September's, changing at 03:00 and
 * 04:00 UTC.
 */
const winters = Array.from({ length: 100 }, (_, offset) => {
  const firstSunday = (month: number, hour: number) => {
    const first = new Date(Date.UTC(1970 + offset, month, 1, hour))
    return first.getTime() + ((7 - first.getUTCDay()) % 7) * 86_400_000
  }
  return { from: firstSunday(3, 3), to: firstSunday(8, 4) }
})

function hoursFromUtc(ms: number): number {
  const winter = winters[new Date(ms).getUTCFullYear() - 1970]
  return winter !== undefined && ms >= winter.from && ms < winter.to ? -4 : -3
}

/** Formats like Python's isoformat: six digits of microseconds, or none if they are zero. */
export function toTimestamp(instant: number): string {
  const ms = Math.floor(instant / SECOND) * 1000
  const hours = hoursFromUtc(ms)
  const local = new Date(ms + hours * 3_600_000).toISOString().slice(0, 19)
  const micros = instant - ms * 1000
  const fraction = micros === 0 ? '' : `.${String(micros).padStart(6, '0')}`
  return `${local}${fraction}-0${-hours}:00`
}

const timestamp = /^(\d{4}-\d\d-\d\d)[T ](\d\d:\d\d:\d\d)(?:\.(\d{1,6}))?(Z|[+-]\d\d:?\d\d)?$/

/** Parses a timestamp to an instant (UTC if it has no offset); undefined if it is invalid. */
export function parseTimestamp(text: string): number | undefined {
  const [, date, clock, fraction, zone] = timestamp.exec(text) ?? []
  const ms = Date.parse(`${date}T${clock}${zone ?? 'Z'}`)
  return Number.isNaN(ms) ? undefined : ms * 1000 + Number((fraction ?? '').padEnd(6, '0'))
}

/** The calendar date in the service's time zone. */
export function toDate(instant: number): string {
  return toTimestamp(instant).slice(0, 10)
}

/** Whether the text is an existing calendar date. */
export function isDate(text: string): boolean {
  if (!/^\d{4}-\d\d-\d\d$/.test(text)) return false
  const date = new Date(`${text}T00:00:00Z`)
  return !Number.isNaN(date.getTime()) && date.toISOString().startsWith(text)
}
