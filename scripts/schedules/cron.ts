import { Cron } from 'croner'

const months = 'JAN FEB MAR APR MAY JUN JUL AUG SEP OCT NOV DEC'.split(' ')
const days = 'SUN MON TUE WED THU FRI SAT'.split(' ')

/** The five fields: their bounds, and the names that stand for numbers. */
const fields = [
  { name: 'minute', from: 0, to: 59, names: [], first: 0 },
  { name: 'hour', from: 0, to: 23, names: [], first: 0 },
  { name: 'day of the month', from: 1, to: 31, names: [], first: 1 },
  { name: 'month', from: 1, to: 12, names: months, first: 1 },
  // 7 is Sunday too.
  { name: 'day of the week', from: 0, to: 7, names: days, first: 0 },
] as const

const help =
  'a cron expression has five fields: minute 0-59, hour 0-23, day of the month 1-31, month 1-12 or JAN-DEC, day of the ' +
  'week 0-7 or SUN-SAT; each is *, numbers, ranges (1-5), lists (1,15) or steps (*/10)'

/** What is wrong with a cron expression, for a person; undefined where Temporal takes it and it ever comes. */
export function wrongCron(text: string): string | undefined {
  if (text.trim().split(/\s+/).length !== fields.length) return help
  // What cron dialects have beside this, Temporal does not know.
  if (!/^[\d\s*,/A-Za-z-]+$/.test(text) || /\d[LW]|\bL\b|\bW\b/i.test(text)) return help
  try {
    const cron = new Cron(text, { ...dialect, timezone: 'UTC' })
    return cron.nextRun() === null ? 'names a day that never comes' : undefined
  } catch {
    return help
  }
}

/** Day of the month and day of the week must both fit, as Temporal has it. */
const dialect = { mode: '5-part', domAndDow: true, paused: true } as const

/** The times of a cron expression between two moments, on a clock that never changes, as if that were UTC. */
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

/** The values of each field, in order: what two ways to write the same times have in common. */
export function expandCron(text: string): number[][] {
  const parts = text.trim().split(/\s+/)
  return fields.map((field, index) => {
    const values = (parts[index] ?? '*').split(',').flatMap((part) => expandPart(part, field))
    return inOrder(field.to === 7 ? values.map((value) => value % 7) : values)
  })
}

function expandPart(part: string, { from, to, names, first }: (typeof fields)[number]): number[] {
  const [range = '*', step = '1'] = part.split('/')
  const toNumber = (text: string): number => {
    const index = (names as readonly string[]).indexOf(text.toUpperCase())
    return index < 0 ? Number(text) : index + first
  }
  const [low, high] = range === '*' ? [from, to === 7 ? 6 : to] : range.split('-').map(toNumber)
  return numbersOf({ from: low!, to: high ?? low!, step: Number(step) })
}

export function numbersOf({ from, to, step }: { from: number; to: number; step: number }): number[] {
  return Array.from({ length: Math.floor((to - from) / step) + 1 }, (_, index) => from + index * step)
}

export const inOrder = (values: readonly number[]): number[] => [...new Set(values)].toSorted((a, b) => a - b)
