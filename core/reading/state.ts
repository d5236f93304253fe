import type { Sizes } from './pages/page-choice.ts'
import type { FrontierState } from './chain/frontier.ts'
import type { Seen } from './record-checks.ts'
import type { Instant } from './instant.ts'
import type { SourceRecord } from './record.ts'
import type { Requests } from './source.ts'

/** A tie group that no window held completely, so it was swept. */
export interface SweptGroup {
  at: string
  records: number
  sweeps: number
  /** What they cost. */
  requests: number
}

export interface Counts {
  /** Windows that were joined to the chain. */
  windows: number
  /** Links that took more than one try. */
  linksRepaired: number
  /** Written. */
  records: number
  rejected: number
  /** Records seen again in an overlap and dropped. */
  duplicatesDropped: number
}

/** The state of one pass over a list with one set of filters. */
export interface PassState {
  /** `chain`: window by window. `pages`: the chain broke, so page by page. */
  phase: 'chain' | 'pages' | 'ended'
  frontier?: FrontierState
  /** Where the oldest record newer than the frontier was last seen. */
  place?: number
  /** The next page, while reading page after page. */
  page: number
  /** Windows that were joined to the chain. */
  windows: number
  /** Requests since the chain last got further. */
  idle: number
  /** How many records the list had when the pass began. */
  size?: number
  sizes?: Sizes
}

/** A part of a list: the records with downTo < created <= upTo. A bound that is absent is infinite. */
export interface Range {
  upTo?: Instant
  downTo?: Instant
}

/** Records sampled under each status before the read and not seen since: id to status. */
export type Watched = Record<string, string>

/**
 * Whether records may have changed to a hidden status during the read. `clear`: none found. `unread`: a record that
 * changed since the read began shows under its status but was not read. `unordered`: the service does not show the last
 * changes, so it cannot be checked. `unseen`: more changed under a status than one page shows.
 */
export type StatusCheck = 'clear' | 'unread' | 'unordered' | 'unseen'

/**
 * Everything a read needs to resume in another process, as small, plain JSON. It covers all steps yielded with it and
 * before it.
 */
export interface ReadState {
  clock: 'service' | 'local'
  /** ms since 1970 */
  startedAt: number
  /** When it began by the service's clock, in ms since 1970; absent if unknown. */
  servedAt?: number
  completeThrough: Instant
  /** Absent if the whole list is read. The read of a range has no outcome of its own. */
  range?: Range
  /** The newest `updated` in the list before the read. */
  newestUpdated?: Instant
  pass: PassState
  /** How many statuses have been read separately; -1 while the list itself is being read. */
  statusesRead: number
  watched?: Watched
  hiddenFound: boolean
  /** Only after a read of a whole list with statuses that was not found to hide any. */
  statusCheck?: StatusCheck
  requests: Omit<Requests, 'most'>
  counts: Counts
  countBefore?: number
  countAfter?: number
  seen: Seen
  /** Records without a readable key: their identities. */
  undated: string[]
  ties: SweptGroup[]
  reasons: string[]
  capped: boolean
}

export interface Progress {
  records: number
  requests: number
  /** The service's own count of the list; a hint. */
  total: number | undefined
}

/** The new records of one or a few requests, newest first, and the state to resume from. */
export interface ReadStep {
  records: SourceRecord[]
  /** Not an object, or without an id. */
  rejected: unknown[]
  state: ReadState
  progress: Progress
}
