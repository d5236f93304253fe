import { isRecord } from '../record.ts'
import { toInstant, type Instant } from '../instant.ts'

/** The field by which the list is ordered and the chain proceeds. */
export type Key = 'created' | 'updated'

/** A page of the list at a given page size. */
export interface PageChoice {
  page: number
  pageSize: number
}

/** The first place of a window. */
export function lowOf({ page, pageSize }: PageChoice): number {
  return (page - 1) * pageSize
}

/**
 * One response of the list: a contiguous slice of it in the order of the key, as it was at one moment.
 *
 * Places count from 0 at the start of the requested order. `keys` never decrease from one record to the next: they are
 * instants, negated if the list was requested newest first; NaN if a record has none.
 */
export interface Window extends PageChoice {
  descending: boolean
  low: number
  records: readonly unknown[]
  keys: readonly number[]
  /** The smallest and the largest key; NaN if no record has one. */
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

/** The place of the first record with a greater key, in the requested order; the place after the window if there is none. */
export function placeAbove(window: Window, key: number): number {
  const at = window.keys.findIndex((other) => other > key)
  return window.low + (at === -1 ? window.keys.length : at)
}

/** The keys of a response; undefined if they decrease from one record to the next. */
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
