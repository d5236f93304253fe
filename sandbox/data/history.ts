import type { Ties } from '../options.ts'
import type { RecordGenerator, StoredRecord } from '../store.ts'
import { Chance } from './random.ts'
import { DAY, SECOND } from './times.ts'

/**
 * Fixed, so that the same seed gives the same data on any day; seven years contain fourteen clock changes.
 */
const FIRST = Date.UTC(2019, 0, 1) * 1000
const SPAN = 7 * 365 * DAY

/** Creates the initial records, in the order of `created`. */
export function createHistory(options: {
  count: number
  seed: number
  ties: Ties
  generator: RecordGenerator
}): StoredRecord[] {
  const { count, generator } = options
  const chance = new Chance(options.seed, 4_000_000_007)
  const tied = placesOfGroups(count, options.ties.groups ?? [])
  const step = SPAN / Math.max(1, count)
  const records: StoredRecord[] = []
  let created = FIRST
  for (let index = 0; index < count; index++) {
    const alike = tied.size > 0 ? tied.get(index) : undefined
    const same = alike ?? chance.happens(options.ties.share ?? 0.04)
    if (!same || index === 0) created = draw(chance, created, FIRST + index * step, step)
    const touched = chance.happens(0.4)
    const updated = touched ? created + Math.floor(chance.fraction() * 30 * DAY) : created
    const id = generator.idOf(index)
    records.push({ id, created, updated, index, entered: 0, fields: undefined, json: undefined })
  }
  return records
}

/**
 * Strictly later than the previous one; one in twelve is at a whole second, which is written without
 * microseconds.
 */
function draw(chance: Chance, before: number, from: number, step: number): number {
  const exact = Math.floor(from + chance.fraction() * step * 0.9)
  const drawn = chance.happens(1 / 12) ? Math.ceil(exact / SECOND) * SECOND : exact
  return Math.max(before + 1, drawn)
}

/** For each index in and right after a group: whether the record has the `created` of the previous one. */
function placesOfGroups(count: number, groups: readonly number[]): Map<number, boolean> {
  const places = new Map<number, boolean>()
  let free = 0
  for (const [number, size] of groups.entries()) {
    const middle = Math.floor(((number + 1) * count) / (groups.length + 1))
    const first = Math.max(free, middle - Math.floor(size / 2))
    free = first + size
    if (free > count)
      throw new RangeError(`groups of ties of ${groups.join(', ')} do not fit ${count} records`)
    for (let place = first; place <= free; place++) places.set(place, place > first && place < free)
  }
  return places
}
