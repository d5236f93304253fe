import { BillingError, NotFound, Refused } from '../billing/errors.ts'
import { clocksDifferMs, type ListPage } from '../billing/reply.ts'
import { usualSizes, type Sizes } from './find-window.ts'
import type { PageRequest, RangeState, ReadOptions } from './range-state.ts'
import { tellApart } from './record.ts'
import { lowOf, toKeys, type Key, type PageChoice, type Window } from './window.ts'

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
  | { kind: 'wrong'; reason: string }
  | { kind: 'capped' }

/** How often a window is requested until it is usable. */
export const maxTries = 3
const inARow = `${maxTries} times in a row`
/**
 * Requests in a row that may bring a chain no further: more than ten sweeps of the largest group take, for which
 * `mostSwept` places are requested. An attempt that resumes within a sweep begins it again.
 */
const mostIdle = ({ least }: Sizes) => 1_000 + Math.ceil(mostSwept / least)
const mostSwept = 600_000
const leastCap = 20

interface ListRead {
  options: ReadOptions
  state: RangeState
}

const isUsedUp = ({ options, state }: ListRead) => state.requests.made >= (options.maxRequests ?? Infinity)

/**
 * Fetches one page and counts the requests. A response that was generated before the read began, as caches and lagging
 * replicas serve them, is requested again.
 * @throws {RequestsUsedUp}
 * @throws the errors of the caller's fetch
 */
export async function fetchFresh(
  read: ListRead,
  request: Omit<PageRequest, 'beforeSend'>,
): Promise<ListPage> {
  const { options, state } = read
  for (let time = 1; ; time++) {
    let tries = 0
    state.requests.made++
    const beforeSend = () => {
      if (++tries === 1) return
      if (isUsedUp(read)) throw new RequestsUsedUp()
      state.requests.made++
    }
    const page = await options.fetchPage({ ...request, beforeSend })
    tellApart(page.records)
    if (!isStale(read, page)) return page
    if (time < maxTries && !isUsedUp(read)) continue
    const reason = `responses were older than the read, ${inARow}: a cache or a lagging replica is answering`
    if (!state.reasons.includes(reason)) state.reasons.push(reason)
    return page
  }
}

/**
 * Servers' clocks differ a little: a response that is older than the read by no more than that is accepted, and the read
 * promises only what that response could show.
 */
function isStale({ options, state }: ListRead, { servedAt, ageMs = 0 }: ListPage): boolean {
  if (ageMs > options.now() - state.startedAt + clocksDifferMs) return true
  if (state.servedAt === undefined || servedAt === undefined) return false
  if (servedAt < state.servedAt - clocksDifferMs) return true
  state.completeThrough = Math.min(state.completeThrough, (servedAt - options.readLagMs) * 1000)
  return false
}

/** Requests windows of one list and checks each response. */
export class WindowFetcher {
  /** The `count` of the last response. */
  count: number | undefined
  /** The lowest page that the service refused, while none as far was served. */
  #refused: { choice: PageChoice; message: string | undefined } | undefined
  readonly #read: ListRead & { key: Key; filters: Readonly<Record<string, string>> }

  constructor(read: ListRead & { key: Key; filters: Readonly<Record<string, string>> }) {
    this.#read = read
  }

  get sizes(): Sizes {
    return this.#read.state.sizes ?? usualSizes
  }

  /** Whether no further request may be made. */
  get exhausted(): boolean {
    return isUsedUp(this.#read)
  }

  /** Why records cannot be reached that the service counts: it refuses the pages that hold them. */
  get unserved(): string | undefined {
    const { choice, message } = this.#refused ?? {}
    if (choice === undefined || (this.count ?? 0) <= lowOf(choice)) return undefined
    const { page, pageSize } = choice
    return `the service counts ${this.count} records but refuses page ${page} of ${pageSize}${message === undefined ? '' : `: ${message}`}`
  }

  /** @throws as `fetchFresh` */
  async page(request: PageChoice & { ordering?: string }): Promise<ListPage> {
    const page = await fetchFresh(this.#read, { ...request, filters: this.#read.filters })
    this.count = page.count ?? this.count
    if (page.count !== undefined) this.#read.state.size ??= page.count
    return page
  }

  /**
   * Requests a window until the answer is usable, at most three times.
   * @throws errors that no other window would avoid
   */
  async ask(choice: PageChoice, { descending = false } = {}): Promise<Answer> {
    const { key, state } = this.#read
    let wanted = choice
    let lastLength: number | undefined
    let wrong: Answer = { kind: 'wrong', reason: '' }
    for (let time = 1; time <= maxTries; time++) {
      if (this.exhausted) return { kind: 'capped' }
      if (state.idle++ > mostIdle(this.sizes))
        return { kind: 'wrong', reason: `${state.idle} requests in a row brought the read no further` }
      let page: ListPage
      try {
        page = await this.page({ ...wanted, ordering: descending ? `-${key}` : key })
      } catch (error) {
        const answer = toAnswer(error, wanted)
        if (answer.kind === 'beyond') this.#sawRefused(wanted, error)
        return answer
      }
      const length = page.records.length
      if (length === 0 && wanted.page > 1) {
        this.#sawRefused(wanted)
        return beyond(wanted)
      }
      if (this.#refused !== undefined && lowOf(wanted) >= lowOf(this.#refused.choice))
        this.#refused = undefined
      const judged = this.#judge(page, wanted, descending)
      // A last page that holds less than it counts may lack a record that was left out, or deleted since the count.
      if (judged.kind === 'window') return lacksRecords(judged.window) ? beyond(wanted) : judged
      wrong = { kind: 'wrong', reason: judged.reason }
      // The same length twice for the largest size: the service seems to have a lower cap; the next request shows.
      if (judged.more && length === lastLength && wanted.page === 1 && wanted.pageSize === this.sizes.most) {
        if (length < leastCap) return { kind: 'wrong', reason: cappedTooLow(length) }
        state.sizes = { least: Math.ceil(length / 2), most: length }
        wanted = { page: 1, pageSize: length }
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
  ): { kind: 'window'; window: Window } | { kind: 'wrong'; reason: string; more?: true } {
    const { key } = this.#read
    const { records, count = 0 } = page
    const { length } = records
    if (length > choice.pageSize) return { kind: 'wrong', reason: tooLong(choice, length) }
    const follows = this.#follows(page, choice)
    if (follows && length < choice.pageSize)
      return { kind: 'wrong', reason: tooShort(choice, { length, due: choice.pageSize }), more: true }
    // A single page must hold all counted records; on a later page, deletes since the count are legitimate.
    if (choice.page === 1 && length < Math.min(choice.pageSize, count))
      return { kind: 'wrong', reason: tooShort(choice, { length, due: Math.min(choice.pageSize, count) }) }
    const keys = toKeys({ records, key, descending })
    if (keys === undefined) return { kind: 'wrong', reason: undatedReason(key) }
    if (keys.some((value, at) => value < (keys[at - 1] ?? -Infinity)))
      return { kind: 'wrong', reason: outOfOrder(choice, key, descending) }
    const window = {
      ...choice,
      keys,
      first: keys[0] ?? NaN,
      last: keys.at(-1) ?? NaN,
      descending,
      low: lowOf(choice),
      records,
      atEnd: !follows && isEnd(page, choice),
      fromTop: descending && choice.page === 1,
      fromStart: !descending && choice.page === 1,
      count: page.count,
    }
    return { kind: 'window', window }
  }

  #follows(page: ListPage, choice: PageChoice): boolean {
    if (page.next === null) return false
    if (typeof page.next === 'string') {
      const url = URL.parse(page.next, 'http://service')
      if (url?.searchParams.get('page') === String(choice.page + 1)) return true
      this.#read.state.requests.oddNext++
    }
    return page.count !== undefined && page.count > choice.page * choice.pageSize
  }
}

function toAnswer(error: unknown, choice: PageChoice): Answer {
  if (error instanceof RequestsUsedUp) return { kind: 'capped' }
  // An order that is refused is refused for page 1, too.
  if ((error instanceof NotFound || error instanceof Refused) && error.byService && choice.page > 1)
    return beyond(choice)
  if (error instanceof Refused && error.byService)
    return { kind: 'wrong', reason: `the list is not ordered: ${error.message}` }
  if (error instanceof BillingError && (error.retryable || error instanceof NotFound))
    return { kind: 'lost', error }
  throw error
}

function beyond(choice: PageChoice): Answer {
  return { kind: 'beyond', low: lowOf(choice) }
}

/**
 * Whether a last page holds fewer records than its own count says. Where it begins below the upper bound of its range, a
 * chain may begin there, so it must not be taken for whole. (The first page is refused then, and so is every page that
 * another one follows.)
 */
function lacksRecords({ atEnd, low, records, count }: Window): boolean {
  return atEnd && low > 0 && count !== undefined && records.length < count - low
}

/** Whether the list seems to end here; if the count and `next` contradict each other, it continues. */
function isEnd({ records, next, count = 0 }: ListPage, { page, pageSize }: PageChoice): boolean {
  return records.length < pageSize || (next === null && count <= page * pageSize)
}

function tooShort({ page, pageSize }: PageChoice, { length, due }: { length: number; due: number }): string {
  return `page ${page} of ${pageSize} held ${length} records instead of ${due}, ${inARow}: records seem to be removed after the list is split into pages`
}

function tooLong({ page, pageSize }: PageChoice, length: number): string {
  return `page ${page} of ${pageSize} held ${length} records, ${inARow}: the service does not follow the page size, so windows cannot be placed`
}

function cappedTooLow(length: number): string {
  return `the service returns at most ${length} records a page: too few for overlapping windows (${leastCap} are needed)`
}

/** A record without a key has no place in the order. */
export const undatedReason = (key: Key) =>
  `some records have no readable ${key}, so their place in the list is unknown`

function outOfOrder({ page, pageSize }: PageChoice, key: Key, descending: boolean): string {
  return `ordering=${descending ? '-' : ''}${key} is not honoured: page ${page} of ${pageSize} came out of order, ${inARow}`
}
