import { isRecord } from './record.ts'
import { toInstant, type Instant } from './instant.ts'

/** The field that orders the list, and that the chain goes down by. */
export type Key = 'created' | 'updated'

/** What is asked for: the page of a list cut into pages of this size. */
export interface Cut {
  page: number
  pageSize: number
}

/** The first place of a window. */
export function lowOf({ page, pageSize }: Cut): number {
  return (page - 1) * pageSize
}

/**
 * One response of the list: a contiguous slice of it in the order of the key, as it was at one moment.
 *
 * Places count from 0 at the start of the order that was asked for. `keys` never fall from one record to the
 * next: they are instants, negated where the list was asked newest first; NaN where a record has none.
 */
export interface Window extends Cut {
  descending: boolean
  low: number
  records: readonly unknown[]
  keys: readonly number[]
  /** The least and the greatest key; NaN where no record has one. */
  first: number
  last: number
  /** The service says that nothing follows. A hint, never a proof. */
  atEnd: boolean
  /** Holds the newest record of the list: page 1, newest first. */
  fromTop: boolean
  /** Holds the oldest record of the list: page 1, oldest first. */
  fromStart: boolean
  count: number | undefined
}

export function oldestOf(window: Window): Instant {
  return window.descending ? -window.last : window.first
}

export function newestOf(window: Window): Instant {
  return window.descending ? -window.first : window.last
}

/** The place of the first record whose key is greater, in the order asked for; the place behind it if none is. */
export function placeAbove(window: Window, key: number): number {
  const at = window.keys.findIndex((other) => other > key)
  return window.low + (at === -1 ? window.keys.length : at)
}

/** The keys of a response, or undefined where they fall from one record to the next. */
export function toKeys(options: {
  records: readonly unknown[]
  key: Key
  descending: boolean
}): { keys: number[]; first: number; last: number } | undefined {
  const { records, key, descending } = options
  const keys: number[] = []
  let first = NaN
  let last = NaN
  for (const record of records) {
    const instant = isRecord(record) ? toInstant(record[key]) : undefined
    if (instant === undefined) {
      keys.push(NaN)
      continue
    }
    const value = descending ? -instant : instant
    if (value < last) return undefined
    if (Number.isNaN(first)) first = value
    last = value
    keys.push(value)
  }
  return { keys, first, last }
}
