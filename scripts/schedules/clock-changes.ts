import { wallTimes } from './cron.ts'

const dayMs = 86_400_000
/** Both changes of a year, and the next of the first. */
const aheadMs = 400 * dayMs

/**
 * What the changes of a zone's clock do to a cron expression in the year ahead, a sentence each: an hour that is
 * skipped has no run, and one that comes twice has two. Of expressions that name their hours only: who runs every hour
 * misses nothing.
 */
export function clockWarnings(options: { cron: string; timezone: string; now: number }): string[] {
  const { cron, timezone, now } = options
  if ((cron.trim().split(/\s+/)[1] ?? '*').startsWith('*')) return []
  return changesOf({ timezone, from: now, to: now + aheadMs }).flatMap(({ before, after, at }) => {
    const [low, high] = [at + Math.min(before, after), at + Math.max(before, after)]
    const times = wallTimes({ cron, from: low, to: high })
    return times.map((time) => {
      const wall = new Date(time).toISOString().slice(0, 16).replace('T', ' ')
      return after > before
        ? `the clock of ${timezone} skips ${wall}: there is no run then`
        : `the clock of ${timezone} shows ${wall} twice: there are two runs then`
    })
  })
}

interface ClockChange {
  at: number
  /** Ahead of UTC, in ms. */
  before: number
  after: number
}

function changesOf(range: { timezone: string; from: number; to: number }): ClockChange[] {
  const offsetAt = createOffsets(range.timezone)
  const changes: ClockChange[] = []
  for (let day = range.from; day < range.to; day += dayMs) {
    const [before, after] = [offsetAt(day), offsetAt(day + dayMs)]
    if (before === after) continue
    let [early, late] = [day, day + dayMs]
    while (late - early > 1000) {
      const middle = (early + late) / 2
      if (offsetAt(middle) === before) early = middle
      else late = middle
    }
    // Clocks change on the minute.
    changes.push({ at: Math.round(late / 60_000) * 60_000, before, after })
  }
  return changes
}

function createOffsets(timeZone: string): (at: number) => number {
  const format = new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' })
  return (at) => {
    const name = format.formatToParts(at).find(({ type }) => type === 'timeZoneName')?.value ?? ''
    const [, sign = '+', hours = '0', minutes = '0'] = /GMT([+-])(\d\d):(\d\d)/.exec(name) ?? []
    return (sign === '-' ? -1 : 1) * (Number(hours) * 60 + Number(minutes)) * 60_000
  }
}
