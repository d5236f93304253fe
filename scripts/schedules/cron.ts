import { Cron } from 'croner'

const help =
  'a cron expression has five fields: minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or JAN-DEC, day of the ' +
  'week 0-7 or SUN-SAT; each is *, numbers, ranges (1-5), lists (1,15) or steps (*/10)'

/** As in Temporal, day of the month and day of the week must both match. */
const dialect = { mode: '5-part', domAndDow: true, paused: true } as const

/** Explains what is wrong with a cron expression; undefined if Temporal accepts it and it matches some day. */
export function cronProblem(text: string): string | undefined {
  // Other dialects support more than this; Temporal does not.
  if (!/^[\d\s*,/A-Za-z-]+$/.test(text) || /\d[LW]|\bL\b|\bW\b/i.test(text)) return help
  try {
    const cron = new Cron(text, { ...dialect, timezone: 'UTC' })
    return cron.nextRun() === null ? 'names a day that never comes' : undefined
  } catch {
    return help
  }
}

/**
 * Lists the times of a cron expression between two moments, in ms, as if the local clock were UTC and never
 * changed.
 */
export function wallTimes(options: { cron: string; from: number; to: number }): number[] {
  const { cron, from, to } = options
  const times = new Cron(cron, { ...dialect, timezone: 'UTC' })
  const found: number[] = []
  for (let next = times.nextRun(new Date(from - 1)); next !== null; next = times.nextRun(next)) {
    if (next.getTime() >= to) break
    found.push(next.getTime())
  }
  return found
}

const dayMs = 86_400_000
/** Covers both clock changes of a year, and the first one of the next. */
const aheadMs = 400 * dayMs

/**
 * Warns of each time of a cron expression that the time zone's clock skips or repeats in the year ahead, one
 * sentence each. Expressions without fixed hours are omitted: an hourly schedule misses nothing.
 */
export function clockWarnings(options: { cron: string; timezone: string; now: number }): string[] {
  const { cron, timezone, now } = options
  if ((cron.trim().split(/\s+/)[1] ?? '*').startsWith('*')) return []
  const offsetAt = createOffsets(timezone)
  const warnings: string[] = []
  for (let day = now - (now % dayMs); day < now + aheadMs; day += dayMs) {
    // Local clocks are never more than a day ahead of UTC or behind it.
    const offsets = [offsetAt(day - dayMs), offsetAt(day + 2 * dayMs)]
    if (offsets[0] === offsets[1]) continue
    for (const time of wallTimes({ cron, from: day, to: day + dayMs })) {
      const shown = offsets.filter((offset) => offsetAt(time - offset) === offset).length
      const wall = new Date(time).toISOString().slice(0, 16).replace('T', ' ')
      if (shown === 0) warnings.push(`the clock of ${timezone} skips ${wall}: no run starts then`)
      if (shown === 2) warnings.push(`the clock of ${timezone} shows ${wall} twice: two runs start then`)
    }
  }
  return warnings
}

/** Returns a function that gives the offset of the time zone from UTC, in ms. */
function createOffsets(timeZone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  return (at) => {
    const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])(\d\d):(\d\d)/.exec(name) ?? []
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
  }
}
