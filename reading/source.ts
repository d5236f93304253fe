import { BillingError, NotFound, Refused } from '../billing/errors.ts'
import type { ListPage } from '../billing/reply.ts'
import { usualSizes, type Sizes } from './cut.ts'
import { lowOf, toKeys, type Cut, type Key, type Window } from './window.ts'

/** What is asked of the caller: one response, retried until it came or is lost. */
export interface PageRequest {
  ordering?: string
  page: number
  pageSize: number
  filters: Readonly<Record<string, string>>
  /** Aborted when the read is closed: its windows in flight are of no use then. */
  signal: AbortSignal
}

export type FetchPage = (request: PageRequest) => Promise<ListPage>

/**
 * `beyond`: there is no such page, by the service's own word; it proves nothing. `lost`: no answer came, after
 * all tries. `wrong`: an answer no chain can be made of. `capped`: the read may make no more requests.
 */
export type Answer =
  | { kind: 'window'; window: Window }
  | { kind: 'beyond'; low: number }
  | { kind: 'lost'; error: unknown }
  | Wrong
  | { kind: 'capped' }

/** `unordered`: the order that was asked for was not followed. */
type Wrong = { kind: 'wrong'; reason: string; unordered?: true }

/** Tells answers that were made before the read began: caches and lagging copies serve them. */
export interface Freshness {
  isStale(page: ListPage): boolean
  /** An answer stayed stale, however often it was asked for. */
  stayedStale(): void
}

/** The requests of a read, over all its passes and processes. */
export interface Requests {
  made: number
  most: number
  /** Responses whose `next` was neither null nor the page that follows. */
  oddNext: number
}

/** How often a window is asked for until it is one to build on. */
export const timesAsked = 3
const leastCap = 20

/** Asks for windows of one list, and holds each response to what counts. */
export class Source {
  readonly key: Key
  readonly filters: Readonly<Record<string, string>>
  sizes: Sizes
  /** As the last response said. */
  count: number | undefined
  readonly #fetchPage: FetchPage
  readonly #requests: Requests
  readonly #freshness: Freshness
  readonly #closed = new AbortController()

  constructor(options: {
    key: Key
    filters: Readonly<Record<string, string>>
    fetchPage: FetchPage
    requests: Requests
    freshness: Freshness
    sizes: Sizes | undefined
  }) {
    this.key = options.key
    this.filters = options.filters
    this.sizes = options.sizes ?? usualSizes
    this.#fetchPage = options.fetchPage
    this.#requests = options.requests
    this.#freshness = options.freshness
  }

  /** No further request may be made. */
  get exhausted(): boolean {
    return this.#closed.signal.aborted || this.#requests.made >= this.#requests.most
  }

  /** What is in flight is of no use any more. */
  close(): void {
    this.#closed.abort()
  }

  /**
   * One response as it came, counted; one that is older than the read is asked for again. Throws what the caller's
   * fetch throws.
   */
  async page(request: Omit<PageRequest, 'filters' | 'signal'>): Promise<ListPage> {
    for (let time = 1; ; time++) {
      this.#requests.made++
      const page = await this.#fetchPage({ ...request, filters: this.filters, signal: this.#closed.signal })
      this.count = page.count ?? this.count
      if (!this.#freshness.isStale(page)) return page
      if (time < timesAsked && !this.exhausted) continue
      this.#freshness.stayedStale()
      return page
    }
  }

  /** Asks until the answer is one to build on, at most three times. Throws what no other window would mend. */
  async ask(cut: Cut, { descending = false } = {}): Promise<Answer> {
    let asked = cut
    let heldBefore: number | undefined
    let wrong: Wrong = { kind: 'wrong', reason: '' }
    for (let time = 1; time <= timesAsked; time++) {
      if (this.exhausted) return { kind: 'capped' }
      let page: ListPage
      try {
        page = await this.page({ ...asked, ordering: descending ? `-${this.key}` : this.key })
      } catch (error) {
        return toAnswer(error, asked)
      }
      const held = page.records.length
      if (held === 0 && asked.page > 1) return beyond(asked)
      const judged = this.#judge(page, asked, descending)
      if (judged.kind === 'window') return judged
      wrong = judged
      // The same number twice for the largest size: the service seems to cap its pages there, and shows if it does.
      if (judged.more && held === heldBefore && asked.page === 1 && asked.pageSize === this.sizes.most) {
        if (held < leastCap) return { kind: 'wrong', reason: cappedTooLow(held) }
        this.sizes = { least: Math.ceil(held / 2), most: held }
        asked = { page: 1, pageSize: held }
      }
      heldBefore = held
    }
    return wrong
  }

  /** What a response is worth. `more`: it held too few although another page follows. */
  #judge(
    page: ListPage,
    cut: Cut,
    descending: boolean,
  ): { kind: 'window'; window: Window } | (Wrong & { more?: true }) {
    const held = page.records.length
    if (held > cut.pageSize) return { kind: 'wrong', reason: tooLong(cut, held) }
    const follows = this.#follows(page, cut)
    if (follows && held < cut.pageSize)
      return { kind: 'wrong', reason: tooShort(cut, { held, due: cut.pageSize }), more: true }
    // The only page must hold all that is counted; on a later one, deletes since the count are no fault.
    const { count = 0 } = page
    if (cut.page === 1 && held < Math.min(cut.pageSize, count))
      return { kind: 'wrong', reason: tooShort(cut, { held, due: count }) }
    const window = this.#toWindow(page, { cut, descending, atEnd: !follows && isEnd(page, cut) })
    if (window !== undefined) return { kind: 'window', window }
    return { kind: 'wrong', reason: outOfOrder(cut, this.key, descending), unordered: true }
  }

  #follows(page: ListPage, cut: Cut): boolean {
    if (page.next === null) return false
    if (typeof page.next === 'string') {
      const url = URL.parse(page.next, 'http://service')
      if (url?.searchParams.get('page') === String(cut.page + 1)) return true
      this.#requests.oddNext++
    }
    return page.count !== undefined && page.count > cut.page * cut.pageSize
  }

  #toWindow(
    page: ListPage,
    { cut, descending, atEnd }: { cut: Cut; descending: boolean; atEnd: boolean },
  ): Window | undefined {
    const keys = toKeys({ records: page.records, key: this.key, descending })
    if (keys === undefined) return undefined
    return {
      ...cut,
      ...keys,
      descending,
      low: lowOf(cut),
      records: page.records,
      atEnd,
      fromTop: descending && cut.page === 1,
      fromStart: !descending && cut.page === 1,
      count: page.count,
    }
  }
}

function toAnswer(error: unknown, cut: Cut): Answer {
  if (error instanceof NotFound && error.byService && cut.page > 1) return beyond(cut)
  if (error instanceof Refused && error.byService)
    return { kind: 'wrong', reason: `the list is not ordered: ${error.message}`, unordered: true }
  if (error instanceof BillingError && (error.retryable || error instanceof NotFound))
    return { kind: 'lost', error }
  throw error
}

function beyond(cut: Cut): Answer {
  return { kind: 'beyond', low: lowOf(cut) }
}

/** Whether the list seems to end here; where the count and `next` contradict each other, it goes on. */
function isEnd({ records, next, count = 0 }: ListPage, { page, pageSize }: Cut): boolean {
  return records.length < pageSize || (next === null && count <= page * pageSize)
}

const inARow = `${timesAsked} times in a row`

function tooShort({ page, pageSize }: Cut, { held, due }: { held: number; due: number }): string {
  return `page ${page} of ${pageSize} held ${held} records where ${due} were due, ${inARow}: records seem to be taken out after the list is cut into pages`
}

function tooLong({ page, pageSize }: Cut, held: number): string {
  return `page ${page} of ${pageSize} held ${held} records, ${inARow}: the page size is not followed, so no window falls where it is needed`
}

function cappedTooLow(held: number): string {
  return `the service gives at most ${held} records a page: too few for windows that overlap (${leastCap} are needed)`
}

function outOfOrder({ page, pageSize }: Cut, key: Key, descending: boolean): string {
  return `ordering=${descending ? '-' : ''}${key} is not honoured: page ${page} of ${pageSize} came out of order, ${inARow}`
}
