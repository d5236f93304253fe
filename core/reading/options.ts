import type { ListResource } from '../billing/resources/resource.ts'
import type { Instant } from './instant.ts'
import type { FetchPage } from './source.ts'
import type { ReadState } from './state.ts'

/** The ids of all records written so far, kept by the caller on disk. */
export interface IdSet {
  /** Adds records and returns for each whether it is new: its id, or its `created`, which never changes. */
  add(records: readonly Identity[]): boolean[] | Promise<boolean[]>
}

/** `id`: the id, or what tells the record from another one with the same id. `created`: undefined if unreadable. */
export interface Identity {
  id: string
  created: Instant | undefined
}

export interface ReadOptions {
  resource: ListResource
  filters?: Readonly<Record<string, string>>
  testMode: boolean
  /**
   * Fetches one page, with its own retries. A `retryable` error of the billing room counts as a lost window; any other
   * error ends the read.
   */
  fetchPage: FetchPage
  /** Maximum number of list requests; reaching it ends the read as capped. */
  maxRequests?: number
  /** How long after its `created` a record can become visible. */
  readLagMs: number
  /** The Date of a response before this read, in ms since 1970; default: this machine's clock. */
  serviceTime?: number
  /** The newest `updated` in the list before this read; passed on to the outcome. */
  newestUpdated?: Instant
  now(): number
  /** Resumes from this state instead of starting over. */
  state?: ReadState
  /**
   * Reads only what changed since this instant (ms since 1970), over `ordering=updated`. Without it the
   * whole list is read over `ordering=created`.
   */
  updatedSince?: number
  /**
   * Called at most once, and only if the frontier cannot tell which records are new: when the chain broke, when hidden
   * records were found, when a list with statuses changed during the read, and over `ordering=updated`, where a record
   * may come twice. Must hold the ids of the records of all steps yielded so far.
   */
  idSet(): Promise<IdSet>
  /**
   * The ids that several of the records of all steps have; called once, at the end. Absent if the caller does not mind.
   */
  repeatedIds?(): Promise<string[]>
}
