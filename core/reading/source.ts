import { BillingError, NotFound, Refused } from '../billing/errors.ts'
import type { ListPage } from '../billing/reply.ts'
import { tellApart } from './record.ts'
import { usualSizes, type Sizes } from './pages/page-choice.ts'
import { lowOf, toKeys, type PageChoice, type Key, type Window } from './chain/window.ts'

/** A request for one page; the caller retries it until it succeeds or is lost. */
export interface PageRequest {
  ordering?: string
  page: number
  pageSize: number
  filters: Readonly<Record<string, string>>
  /** To be called before each request that is sent, retries included, so that they are counted; it may refuse one. */
  beforeSend: () => void
}

export type FetchPage = (request: PageRequest) => Promise<ListPage>

/** The read may make no more requests, so a failed one is not sent again. */
export class RequestsUsedUp extends Error {
  override readonly name = 'RequestsUsedUp'
}

/**
 * `beyond`: the service says that there is no such page, which proves nothing. `lost`: no answer after all retries.
 * `wrong`: the answer cannot be part of a chain. `capped`: the read may make no more requests.
 */
export type Answer =
  | { kind: 'window'; window: Window }
  | { kind: 'beyond'; low: number }
  | { kind: 'lost'; error: unknown }
  | Wrong
  | { kind: 'capped' }

/** `unordered`: the requested order was not followed. */
type Wrong = { kind: 'wrong'; reason: string; unordered?: true }

/** Detects responses generated before the read began, as caches and lagging replicas serve them. */
export interface Freshness {
  isStale(page: ListPage): boolean
  /** Called if a response stayed stale after all tries. */
  stayedStale(): void
}

/** The requests of a read, across all its passes and processes. */
export interface Requests {
  /** Each that was sent, failed ones and retries included. */
  made: number
  most: number
  /** Responses whose `next` was neither null nor the following page. */
  oddNext: number
}

/** How often a window is requested until it is usable. */
export const maxTries = 3
/**
 * Requests in a row that may bring a chain no further: more than ten sweeps of the largest group take, for which
 * `mostSwept` places are requested. An attempt that resumes within a sweep begins it again.
 */
const mostIdle = ({ least }: Sizes) => 1_000 + Math.ceil(mostSwept / least)
const mostSwept = 600_000
const leastCap = 20

/** Requests windows of one list and checks each response. */
export class Source {
  readonly key: Key
  readonly filters: Readonly<Record<string, string>>
  sizes: Sizes
  /** The `count` of the last response. */
  count: number | undefined
  /** How many records the list had at first, as it counted or showed them. */
  size: number | undefined
  /** Requests since the chain last got further. */
  idle: number
  /** The lowest page that the service refused, while none as far was served. */
  #refused: { choice: PageChoice; message: string | undefined } | undefined
  readonly #fetchPage: FetchPage
  readonly #requests: Requests
  readonly #freshness: Freshness

  constructor(options: {
    key: Key
    filters: Readonly<Record<string, string>>
    fetchPage: FetchPage
    requests: Requests
    freshness: Freshness
    sizes: Sizes | undefined
    size?: number | undefined
    idle?: number
  }) {
    this.key = options.key
    this.filters = options.filters
    this.sizes = options.sizes ?? usualSizes
    this.size = options.size
    this.idle = options.idle ?? 0
    this.#fetchPage = options.fetchPage
    this.#requests = options.requests
    this.#freshness = options.freshness
  }

  /** Whether no further request may be made. */
  get exhausted(): boolean {
    return this.#requests.made >= this.#requests.most
  }

  /** Why records cannot be reached that the service counts: it refuses the pages that hold them. */
  get unserved(): string | undefined {
    const { choice, message } = this.#refused ?? {}
    if (choice === undefined || (this.count ?? 0) <= lowOf(choice)) return undefined
    const { page, pageSize } = choice
    return `the service counts ${this.count} records but refuses page ${page} of ${pageSize}${message === undefined ? '' : `: ${message}`}`
  }

  /**
   * Fetches one page and counts the requests; a response older than the read is requested again.
   * @throws {RequestsUsedUp}
   * @throws the errors of the caller's fetch
   */
  async page(request: Omit<PageRequest, 'filters' | 'beforeSend'>): Promise<ListPage> {
    for (let time = 1; ; time++) {
      const page = await this.#fetch(request)
      this.count = page.count ?? this.count
      this.size ??= page.count
      if (!this.#freshness.isStale(page)) return page
      if (time < maxTries && !this.exhausted) continue
      this.#freshness.stayedStale()
      return page
    }
  }

  async #fetch(request: Omit<PageRequest, 'filters' | 'beforeSend'>): Promise<ListPage> {
    let tries = 0
    this.#requests.made++
    const beforeSend = () => {
      if (++tries === 1) return
      if (this.exhausted) throw new RequestsUsedUp()
      this.#requests.made++
    }
    const page = await this.#fetchPage({ ...request, filters: this.filters, beforeSend })
    tellApart(page.records)
    return page
  }

  /**
   * Requests a window until the answer is usable, at most three times.
   * @throws errors that no other window would avoid
   */
  async ask(choice: PageChoice, { descending = false } = {}): Promise<Answer> {
    let asked = choice
    let lastLength: number | undefined
    let wrong: Wrong = { kind: 'wrong', reason: '' }
    for (let time = 1; time <= maxTries; time++) {
      if (this.exhausted) return { kind: 'capped' }
      if (this.idle++ > mostIdle(this.sizes))
        return { kind: 'wrong', reason: `${this.idle} requests in a row brought the read no further` }
      let page: ListPage
      try {
        page = await this.page({ ...asked, ordering: descending ? `-${this.key}` : this.key })
      } catch (error) {
        const answer = toAnswer(error, asked)
        if (answer.kind === 'beyond') this.#sawRefused(asked, error)
        return answer
      }
      const length = page.records.length
      if (length === 0 && asked.page > 1) {
        this.#sawRefused(asked)
        return beyond(asked)
      }
      if (this.#refused !== undefined && lowOf(asked) >= lowOf(this.#refused.choice))
        this.#refused = undefined
      const judged = this.#judge(page, asked, descending)
      if (judged.kind === 'window') return lacksRecords(judged.window) ? beyond(asked) : judged
      wrong = judged
      // The same length twice for the largest size: the service seems to have a lower cap; the next request shows.
      if (judged.more && length === lastLength && asked.page === 1 && asked.pageSize === this.sizes.most) {
        if (length < leastCap) return { kind: 'wrong', reason: cappedTooLow(length) }
        this.sizes = { least: Math.ceil(length / 2), most: length }
        asked = { page: 1, pageSize: length }
      }
      lastLength = length
    }
    return wrong
  }

  #sawRefused(choice: PageChoice, error?: unknown): void {
    const low = lowOf(choice)
    // Past the end, there is nothing to serve.
    if ((this.count ?? 0) <= low || low >= lowOf(this.#refused?.choice ?? { page: Infinity, pageSize: 1 }))
      return
    const message = error instanceof Refused ? error.message : undefined
    this.#refused = { choice, message }
  }

  /** Checks a response. `more`: it held too few records although another page follows. */
  #judge(
    page: ListPage,
    choice: PageChoice,
    descending: boolean,
  ): { kind: 'window'; window: Window } | (Wrong & { more?: true }) {
    const length = page.records.length
    if (length > choice.pageSize) return { kind: 'wrong', reason: tooLong(choice, length) }
    const follows = this.#follows(page, choice)
    if (follows && length < choice.pageSize)
      return { kind: 'wrong', reason: tooShort(choice, { length, due: choice.pageSize }), more: true }
    // A single page must hold all counted records; on a later page, deletes since the count are legitimate.
    const { count = 0 } = page
    if (choice.page === 1 && length < Math.min(choice.pageSize, count))
      return { kind: 'wrong', reason: tooShort(choice, { length, due: Math.min(choice.pageSize, count) }) }
    const window = this.#toWindow(page, { choice, descending, atEnd: !follows && isEnd(page, choice) })
    if (window !== undefined) return { kind: 'window', window }
    return { kind: 'wrong', reason: outOfOrder(choice, this.key, descending), unordered: true }
  }

  #follows(page: ListPage, choice: PageChoice): boolean {
    if (page.next === null) return false
    if (typeof page.next === 'string') {
      const url = URL.parse(page.next, 'http://service')
      if (url?.searchParams.get('page') === String(choice.page + 1)) return true
      this.#requests.oddNext++
    }
    return page.count !== undefined && page.count > choice.page * choice.pageSize
  }

  #toWindow(
    page: ListPage,
    { choice, descending, atEnd }: { choice: PageChoice; descending: boolean; atEnd: boolean },
  ): Window | undefined {
    const keys = toKeys({ records: page.records, key: this.key, descending })
    if (keys === undefined) return undefined
    return {
      ...choice,
      ...keys,
      descending,
      low: lowOf(choice),
      records: page.records,
      atEnd,
      fromTop: descending && choice.page === 1,
      fromStart: !descending && choice.page === 1,
      count: page.count,
    }
  }
}

function toAnswer(error: unknown, choice: PageChoice): Answer {
  if (error instanceof RequestsUsedUp) return { kind: 'capped' }
  // An order that is refused is refused for page 1, too.
  if ((error instanceof NotFound || error instanceof Refused) && error.byService && choice.page > 1)
    return beyond(choice)
  if (error instanceof Refused && error.byService)
    return { kind: 'wrong', reason: `the list is not ordered: ${error.message}`, unordered: true }
  if (error instanceof BillingError && (error.retryable || error instanceof NotFound))
    return { kind: 'lost', error }
  throw error
}

function beyond(choice: PageChoice): Answer {
  return { kind: 'beyond', low: lowOf(choice) }
}

/**
 * Whether a last page holds fewer records than its own count says. Deletes since the count explain it, and so does a
 * record that was left out of the slice. The first page is refused then, and so is every page that another one follows.
 */
function lacksRecords({ atEnd, low, records, count }: Window): boolean {
  return atEnd && low > 0 && count !== undefined && records.length < count - low
}

/** Whether the list seems to end here; if the count and `next` contradict each other, it continues. */
function isEnd({ records, next, count = 0 }: ListPage, { page, pageSize }: PageChoice): boolean {
  return records.length < pageSize || (next === null && count <= page * pageSize)
}

const inARow = `${maxTries} times in a row`

function tooShort({ page, pageSize }: PageChoice, { length, due }: { length: number; due: number }): string {
  return `page ${page} of ${pageSize} held ${length} records instead of ${due}, ${inARow}: records seem to be removed after the list is split into pages`
}

function tooLong({ page, pageSize }: PageChoice, length: number): string {
  return `page ${page} of ${pageSize} held ${length} records, ${inARow}: the service does not follow the page size, so windows cannot be placed`
}

function cappedTooLow(length: number): string {
  return `the service returns at most ${length} records a page: too few for overlapping windows (${leastCap} are needed)`
}

function outOfOrder({ page, pageSize }: PageChoice, key: Key, descending: boolean): string {
  return `ordering=${descending ? '-' : ''}${key} is not honoured: page ${page} of ${pageSize} came out of order, ${inARow}`
}
