import type { Sizes } from './page-choice.ts'
import type { FrontierState } from './frontier.ts'
import type { Seen } from './record-checks.ts'
import type { Instant } from './instant.ts'
import type { SourceRecord } from './record.ts'
import type { Requests } from './source.ts'

/** A group of equal keys that no window held, and that was swept. */
export interface SweptGroup {
  at: string
  records: number
  sweeps: number
}

export interface Counts {
  /** Windows that were joined to the chain. */
  windows: number
  /** Links that took more than one window. */
  linksMended: number
  /** Written. */
  records: number
  rejected: number
  /** Met again in an overlap, and dropped. */
  duplicatesDropped: number
}

/** Where one pass over a list under one set of filters stands. */
export interface PassState {
  /** `chain`: down by links. `pages`: the chain broke, so page after page. */
  phase: 'chain' | 'pages' | 'ended'
  frontier?: FrontierState
  /** Where the oldest record that is newer than the frontier was last seen. */
  place?: number
  /** The next page, while reading page after page. */
  page: number
  sizes?: Sizes
  /** Whether `-created` was seen to be ignored, so that the end of `created` stands for its first page. */
  topByEnd: boolean
}

/** Records seen under each status before the read, and not met since: id to its status. */
export type Watched = Record<string, string>

/**
 * Whether records may have gone to a hidden status during the read. `clear`: none was seen to. `unread`: one that changed
 * since the read began is shown under its status and was not read. `unordered`: the service does not show what changed
 * last, so nobody can tell. `unseen`: more changed under a status than one page shows.
 */
export type StatusCheck = 'clear' | 'unread' | 'unordered' | 'unseen'

/**
 * All that a read must remember to go on in another process: small, and plain JSON. It stands for everything
 * that has been handed out with it and before it.
 */
export interface ReadState {
  version: 1
  clock: 'service' | 'local'
  /** ms since 1970 */
  startedAt: number
  /** When it began by the service's clock, in ms since 1970; absent where that was never told. */
  servedAt?: number
  completeThrough: Instant
  /** The newest `updated` that the list showed before the read. */
  newestUpdated?: Instant
  pass: PassState
  /** How many statuses have been read apart; -1 while the list itself is being read. */
  statusesRead: number
  watched?: Watched
  hiddenFound: boolean
  /** Only after a read of a whole list that has statuses and was not seen to hide any. */
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
  /** What the verdict rests on besides what it always does: sentences for the scope. */
  provided: string[]
  capped: boolean
}

export interface Progress {
  records: number
  requests: number
  /** How many records the list is said to hold; a hint. */
  total: number | undefined
}

/** What came new with one or a few requests, newest first, and the state that goes on behind it. */
export interface ReadStep {
  records: SourceRecord[]
  /** No object, or without an id. */
  rejected: unknown[]
  state: ReadState
  progress: Progress
}
