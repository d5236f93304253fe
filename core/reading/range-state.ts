import { z } from 'zod'
import type { StepLine } from './certificate.ts'
import type { ListPage } from '../billing/reply.ts'
import { type ListResource, statusesOf } from '../billing/resources/filters.ts'
import type { Sizes } from './find-window.ts'
import type { Instant } from '../billing/instants.ts'
import type { SourceRecord } from './record.ts'
import type { FrontierState, PageChoice } from './window.ts'

const count = z.int().min(0)

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

/** A request for one page; the caller retries it until it succeeds or is lost. */
export interface PageRequest extends PageChoice {
  ordering?: string
  filters: Readonly<Record<string, string>>
  /** To be called before each request that is sent, retries included, so that they are counted; it may refuse one. */
  beforeSend: () => void
}

export type FetchPage = (request: PageRequest) => Promise<ListPage>

export interface ReadOptions {
  resource: ListResource
  filters?: Readonly<Record<string, string>>
  testMode: boolean
  /**
   * Fetches one page, with its own retries. A `retryable` error of the billing room counts as a lost window; any other
   * error ends the read.
   */
  fetchPage: FetchPage
  /** Maximum number of list requests, retries included; reaching it ends the read as capped. */
  maxRequests?: number
  /** How long after its `created` a record can become visible. */
  readLagMs: number
  /** The Date of a response before this read, in ms since 1970; default: this machine's clock. */
  serviceTime?: number
  /** The newest `updated` in the list before this read; passed on to the outcome. */
  newestUpdated?: Instant
  now(): number
  /** Resumes from this state instead of starting over. */
  state?: RangeState
  /**
   * Reads only what changed since this instant (ms since 1970), over `ordering=updated`. Without it the list is read over
   * `ordering=created`.
   */
  updatedSince?: number
  /** Reads only what is newer than this. */
  downTo?: Instant
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

/** The records with downTo < key <= upTo. A bound that is absent is infinite. */
export interface Range {
  upTo?: Instant
  downTo?: Instant
}

/** A tie group that no window held completely, so it was swept; `requests`: what that cost. */
export const sweptGroup = z.object({ at: z.string(), records: count, sweeps: count, requests: count })

/**
 * Whether records may have changed to a hidden status during the read. `clear`: none found. `unread`: a record that
 * changed since the read began shows under its status but was not read. `unordered`: the service does not show the last
 * changes, so it cannot be checked. `unseen`: more changed under a status than one page shows.
 */
export const statusCheck = z.enum(['clear', 'unread', 'unordered', 'unseen'])
export type StatusCheck = z.infer<typeof statusCheck>

/**
 * Everything that the read of a range needs to resume in another process, as small, plain JSON. It covers all steps
 * yielded with it and before it. The whole list is one range, or the sum of several.
 */
export interface RangeState {
  clock: 'service' | 'local'
  /** ms since 1970 */
  startedAt: number
  /** When it began by the service's clock, in ms since 1970; absent if unknown. */
  servedAt?: number
  completeThrough: Instant
  /** `ReadOptions.readLagMs` of the worker that began the read. */
  lagMs: number
  range: Range
  /** The chain has met a record at or below its lower bound. */
  sawBound?: true
  /** The newest `updated` in the list before the read. */
  newestUpdated?: Instant
  /** The certificate has the line with which this pass begins. */
  begun: boolean
  /** The date of the last window in the certificate, in ms since 1970. */
  datedAt?: number | undefined
  /** The chain has met the end of its range. */
  sawEnd: boolean
  /** `chain`: window by window. `pages`: the chain broke, so page by page. */
  phase: 'chain' | 'pages' | 'ended'
  frontier?: FrontierState | undefined
  /** Where the oldest record newer than the frontier was last seen. */
  place?: number | undefined
  /** The next page, while reading page after page. */
  page: number
  /** Windows that were joined to the chain since the pass began. */
  linked: number
  /** Requests since the chain last got further. */
  idle: number
  /** How many records the list had at first, as it counted or showed them. */
  size?: number | undefined
  /** The page sizes that the service allows, if they are not the usual ones. */
  sizes?: Sizes | undefined
  /** How many statuses have been read separately; -1 while the list itself is being read. */
  statusesRead: number
  /** Records sampled under each status before the read and not seen since: id to status. */
  watched?: Record<string, string>
  /** Statuses that showed records before the read, and with which it has met none. */
  unmet?: string[]
  hiddenFound: boolean
  /** Only after a read of a whole list with statuses that was not found to hide any. */
  statusCheck?: StatusCheck
  counts: {
    /** Each that was sent, retries included. */
    requests: number
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
  countBefore?: number
  countAfter?: number
  /** What the records revealed about the service. */
  seen: {
    /** Filters that the service ignored, with the number of records that did not match. */
    ignored: Record<string, number>
    /** Whether the records say if they are live or test data. */
    testMode: boolean
    /** Responses whose `next` was neither null nor the following page. */
    oddNext: number
  }
  ties: z.infer<typeof sweptGroup>[]
  reasons: string[]
  capped: boolean
}

/** The part of the state that begins again when the list is read with another filter. */
export const newPass = {
  begun: false,
  datedAt: undefined,
  sawEnd: false,
  phase: 'chain',
  frontier: undefined,
  place: undefined,
  page: 1,
  linked: 0,
  idle: 0,
  size: undefined,
  sizes: undefined,
} as const satisfies Partial<RangeState>

/** The new records of one or a few requests, newest first, and the state to resume from. */
export interface ReadStep {
  records: SourceRecord[]
  /** Not an object, or without an id. */
  rejected: unknown[]
  state: RangeState
  /** What it adds to the certificate. Those of its lines that took records took the ones above, in their order. */
  lines: StepLine[]
  /** The read fails after this step. */
  fails?: true
}

/** A whole list with statuses may hide some records unless their status is requested. */
export function statusesThatHide(options: ReadOptions): readonly string[] {
  const { resource, filters, updatedSince, downTo } = options
  const isWhole = [filters?.['status'], updatedSince, downTo].every((one) => one === undefined)
  return isWhole ? statusesOf(resource) : []
}

/** Where requests are limited, none is spent on this. */
export const statusesToWatch = (options: ReadOptions): readonly string[] =>
  options.maxRequests === undefined ? statusesThatHide(options) : []

/** The state of a read before its first request. */
export function startState(
  options: Pick<
    ReadOptions,
    'now' | 'serviceTime' | 'readLagMs' | 'newestUpdated' | 'updatedSince' | 'downTo'
  >,
): RangeState {
  const startedAt = options.now()
  const { serviceTime, readLagMs, newestUpdated, updatedSince } = options
  // Instants are whole microseconds: this is just below the first one that is wanted.
  const downTo = updatedSince === undefined ? options.downTo : Math.ceil(updatedSince * 1000) - 1
  return {
    clock: serviceTime === undefined ? 'local' : 'service',
    startedAt,
    ...(serviceTime !== undefined && { servedAt: serviceTime }),
    ...(newestUpdated !== undefined && { newestUpdated }),
    completeThrough: ((serviceTime ?? startedAt) - readLagMs) * 1000,
    lagMs: readLagMs,
    range: downTo === undefined || downTo === -Infinity ? {} : { downTo },
    ...newPass,
    statusesRead: -1,
    hiddenFound: false,
    counts: { requests: 0, windows: 0, linksRepaired: 0, records: 0, rejected: 0, duplicatesDropped: 0 },
    seen: { ignored: {}, testMode: false, oddNext: 0 },
    ties: [],
    reasons: [],
    capped: false,
  }
}
