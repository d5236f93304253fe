/**
 * How a read proves that nothing is missing: the windows, the frontier and the link between them. Read this file first.
 *
 * A list moves while it is read, so page numbers prove nothing. But one response is one contiguous slice of the list in
 * the order of the key, as it was at one moment. A window that holds a record strictly newer than the frontier and
 * reaches below it therefore holds everything between them that was in the list at that moment. A chain of such windows,
 * from the newest record to the oldest, has seen every record that was in the list throughout.
 */
import { toInstant, type Instant } from '../billing/instants.ts'
import { isRecord } from './record.ts'

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
 * One response of the list.
 *
 * Places count from 0 at the start of the requested order. `keys` never decrease from one record to the next: they are
 * instants, negated if the list was requested newest first.
 */
export interface Window extends PageChoice {
  descending: boolean
  low: number
  records: readonly unknown[]
  keys: readonly number[]
  /** The smallest and the largest key; NaN if there are no records. */
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
  const index = window.keys.findIndex((other) => other > key)
  return window.low + (index === -1 ? window.keys.length : index)
}

/** The keys of a response, in its order; undefined if a record has none that is readable. */
export function toKeys(options: {
  records: readonly unknown[]
  key: Key
  descending: boolean
}): number[] | undefined {
  const { records, key, descending } = options
  const keys: number[] = []
  for (const record of records) {
    const instant = isRecord(record) ? toInstant(record[key]) : undefined
    if (instant === undefined) return undefined
    keys.push(descending ? -instant : instant)
  }
  return keys
}

export interface FrontierState {
  at: Instant
  closed: boolean
  ids: string[]
}

/**
 * How far the chain has come: the oldest key taken, and the ids of the records taken with that key.
 *
 * Everything that was in the list throughout and is newer than `at` has been taken. Of the records at `at`, more may lie
 * below the last window, until the frontier is `closed`: then all of them have been taken, and one of them links like a
 * newer record. It starts closed at infinity, and a sweep of all records of one time closes it. The list is read newest
 * first, so this is enough to take each record once.
 */
export class Frontier {
  /** Infinity before the first window. */
  at: Instant = Infinity
  closed = true
  ids = new Set<string>()

  static from(state: FrontierState | undefined): Frontier {
    const frontier = new Frontier()
    if (state !== undefined) Object.assign(frontier, { ...state, ids: new Set(state.ids) })
    return frontier
  }

  toState(): FrontierState | undefined {
    return this.at === Infinity ? undefined : { at: this.at, closed: this.closed, ids: [...this.ids] }
  }

  /** Takes a record. Returns true if it is new: older than all taken before, or as old as the oldest with a new id. */
  take(at: Instant, identity: string): boolean {
    if (at > this.at) return false
    if (at < this.at) {
      this.at = at
      this.closed = false
      this.ids.clear()
    } else if (this.ids.has(identity)) return false
    this.ids.add(identity)
    return true
  }
}

/**
 * The position of a window relative to the frontier.
 *
 * `links`: it holds everything from the frontier down to its own oldest record, and some of that is new.
 * `stuck`: it reaches above the frontier, but its oldest record is at the frontier: all its records of that time may be
 * known, and more may lie below. No window of this size gets further, so all records of that time are swept.
 * `over`: all its records are newer. `under`: none of its records is newer, so there may be a gap above it.
 */
export type Link = 'links' | 'stuck' | 'over' | 'under'

/** A record *at* the frontier links only if the frontier is closed; otherwise more of that time may lie above it. */
export function toLink(window: Window, frontier: Frontier): Link {
  const newest = newestOf(window)
  const oldest = oldestOf(window)
  const reaches = window.fromTop || newest > frontier.at || (frontier.closed && newest === frontier.at)
  if (!reaches) return 'under'
  if (window.fromStart || oldest < frontier.at) return 'links'
  return oldest === frontier.at && !frontier.closed ? 'stuck' : 'over'
}
