/**
 * How a read proves that nothing is missing. Read this file first: the rest of the room only finds the windows.
 *
 * **Window.** A list moves while it is read, so page numbers prove nothing. But one response is one contiguous slice of the
 * list in the order of the key, as it was at one moment.
 *
 * **Frontier.** The chain goes from the newest record down. Its frontier is the oldest key taken so far.
 *
 * **Link.** A window that holds a record strictly newer than the frontier, and also reaches below it, holds everything
 * between the two that was in the list at that moment. So no record that was there throughout can be missed:
 *
 *     newest                                                        oldest
 *     [ page 1 of -created     F ]
 *                         [ window  F             F' ]
 *                                               [ window  F'  ... ]
 *                                                      [ page 1 of created ]
 *
 * Take such a record. The frontier begins above it and ends below it, so one window moved the frontier across it. That
 * window reaches from strictly above the frontier that it found down to the one that it left, and a response is
 * contiguous: the record is in it. The chain is whole once it holds page 1 of `created`, which shows the oldest record
 * (or a record below the lower bound of its range). `toLink` below is this rule; the tests break it in several ways and
 * see records lost.
 *
 * **Records of one time.** Their order may differ in each response. A window that ends among them may show some and hide
 * others, and two windows that hold one half each prove nothing. Therefore a record *at* the frontier does not link: the next
 * window must hold a strictly newer one, and so it holds all records of that time at once. Only where more records have one
 * time than a window holds, no window can: the chain is `stuck`, until all of them are known to be taken. Then the frontier
 * is `closed`, and a record at it links like a newer one.
 *
 * **Sweeps** (ties.ts) close it. All places of the group are read, again and again, until two sweeps in a row show
 * the same records, as many as the group has places before, between and after them. A record that was there throughout
 * can slip from one page to another past a sweep, across the seam between two pages. Then the sweep shows one record
 * less than there are places, unless another record has joined, or older ones came or went while the places were counted.
 * So each seam of a sweep must lie inside a window of another one that shows the same records: what slipped past it stands
 * there, unless the group comes in another order each time, and then its places have to tell. Where only the service says
 * that a group is the end of the list, by a count that may be old, page 1 of `created` must show nothing else.
 *
 * **Hidden statuses** (hidden-records.ts). A list may show some records only if their status is requested. The chain cannot
 * know, because they are in none of its windows. So the newest, the oldest and the last changed records of each status are
 * looked at before the read. One that the read has not met and that its status still shows afterwards is hidden, and so may
 * be any with a status of which it has met no record: then each status is read by a chain of its own. If there is none,
 * the last changes of each status are looked at once more, because a record may have moved to a hidden status meanwhile.
 *
 * **Ranges** (ranges.ts). Nothing above depends on when a window is read or by whom. So a list may be cut at any instants
 * into ranges, each with a chain of its own. Its frontier begins at its upper bound, with nothing taken there and not
 * closed: even the first window must hold a record strictly newer.
 *
 * What is assumed: a response is one slice of one moment, `created` of a record does not change, and where all records have
 * one time, or there are none, the service counts all of them. Whatever the service
 * does otherwise, a chain that breaks only costs the proof: the list is then read page by page, as unproven.
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
  /** Another page follows, by its link or by its count. */
  follows: boolean
  /** When the service made the response, in ms since 1970. */
  servedAt: number | undefined
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

/** A record without a key has no place in the order. */
export const undatedReason = (key: Key) =>
  `some records have no readable ${key}, so their place in the list is unknown`

export interface FrontierState {
  at: Instant
  closed: boolean
  ids: readonly string[]
}

/**
 * How far the chain has come: the oldest key taken, and the ids of the records taken with that key.
 *
 * Everything that was in the list throughout and is newer than `at` has been taken. Of the records at `at`, more may lie
 * below the last window, until the frontier is `closed`. It starts closed at infinity. The list is read newest first, so
 * this is enough to take each record once.
 */
export class Frontier {
  /** Infinity before the first window. */
  at: Instant = Infinity
  closed = true
  ids = new Set<string>()
  /** The ids of the last state, until another is taken: a sweep makes a state for each of its pages. */
  #stated: readonly string[] | undefined

  static from(state: FrontierState | undefined): Frontier {
    const frontier = new Frontier()
    if (state !== undefined) Object.assign(frontier, { ...state, ids: new Set(state.ids) })
    return frontier
  }

  toState(): FrontierState | undefined {
    if (this.at === Infinity) return undefined
    this.#stated ??= [...this.ids]
    return { at: this.at, closed: this.closed, ids: this.#stated }
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
    this.#stated = undefined
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
