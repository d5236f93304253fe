import type { ListResource } from '../billing/resources/resource.ts'
import type { Instant } from './instant.ts'
import type { FetchPage } from './source.ts'
import type { ReadState } from './state.ts'

/** The ids of every record written so far, kept by the caller where there is room for all of them. */
export interface IdSet {
  /** Adds the ids, and says of each whether it is new. */
  add(ids: readonly string[]): boolean[] | Promise<boolean[]>
}

export interface ReadOptions {
  resource: ListResource
  filters?: Readonly<Record<string, string>>
  testMode: boolean
  /**
   * One response of the list, tried as often as it is worth it: what it throws at last counts as lost where it
   * is a `retryable` error of the billing room, and ends the read where it is anything else.
   */
  fetchPage: FetchPage
  /** Windows in flight, from 1. */
  concurrency: number
  /** Requests the read may make for the list; reaching it ends the read as capped. */
  maxRequests?: number
  /** How long after its `created` a record can become visible. */
  readLagMs: number
  /** The Date of a response that came before this read, in ms since 1970; without it this machine's clock stands. */
  serviceTime?: number
  /** The newest `updated` that the list showed before this read; the account of the read passes it on. */
  newestUpdated?: Instant
  now(): number
  /** Goes on from here instead of starting anew. */
  state?: ReadState
  /**
   * Reads down to this instant only (ms since 1970), over `ordering=updated`: what changed since. Without it the
   * whole list is read over `ordering=created`.
   */
  updatedSince?: number
  /**
   * Asked for once, and only where the frontier can't tell what is new: when the chain broke, when hidden records
   * were found, when a list that has statuses changed during the read, and over `ordering=updated`, where a record
   * may be met twice. Holds the ids of the records of all
   * steps handed out so far.
   */
  idSet(): Promise<IdSet>
}
