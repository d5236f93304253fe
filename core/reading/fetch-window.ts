import { BillingError, NotFound, Refused } from '../billing/errors.ts'
import { clocksDifferMs, type ListPage } from '../billing/reply.ts'
import type { Sizes } from './find-window.ts'
import type { PageRequest } from './range-state.ts'
import type { Reading } from './reading.ts'
import { tellApart } from './record.ts'
import { lowOf, toKeys, undatedReason, type Key, type PageChoice, type Window } from './window.ts'

/** The read may make no more requests: it ends as capped. */
export class RequestsUsedUp extends Error {
  override readonly name = 'RequestsUsedUp'
}

/** The chain can't be followed any further, and why: the list is read page by page then, as unproven. */
export class ChainBroken extends Error {
  override readonly name = 'ChainBroken'
}

/** `beyond`: the service says that there is no such page, which proves nothing. `lost`: no answer after all retries. */
export type Answer =
  | { kind: 'window'; window: Window }
  | { kind: 'beyond'; low: number }
  | { kind: 'lost'; error: unknown }

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

/**
 * Fetches one page and counts the requests. A response that was generated before the read began, as caches and lagging
 * replicas serve them, is requested again.
 * @throws {RequestsUsedUp}
 * @throws the errors of the caller's fetch
 */
export async function fetchFresh(
  reading: Reading,
  request: Omit<PageRequest, 'beforeSend'>,
): Promise<ListPage> {
  const { counts } = reading.state
  for (let time = 1; ; time++) {
    let tries = 0
    const count = () => {
      if (reading.isUsedUp) throw new RequestsUsedUp()
      counts.requests++
    }
    count()
    const beforeSend = () => {
      if (++tries > 1) count()
    }
    const page = await reading.options.fetchPage({ ...request, beforeSend }).catch((error: unknown) => {
      // None was sent: there was no token, or the step was stopped first.
      if (tries === 0 && !(error instanceof BillingError)) counts.requests--
      throw error
    })
    tellApart(page.records)
    if (!isStale(reading, page)) return page
    if (time < maxTries && !reading.isUsedUp) continue
    reading.addReason(
      `responses were older than the read, ${inARow}: a cache or a lagging replica is answering`,
    )
    return page
  }
}

/**
 * Servers' clocks differ a little: a response that is older than the read by no more than that is accepted, and the read
 * promises only what that response could show.
 */
function isStale({ options, state }: Reading, { servedAt, ageMs = 0 }: ListPage): boolean {
  if (ageMs > options.now() - state.startedAt + clocksDifferMs) return true
  if (state.servedAt === undefined || servedAt === undefined) return false
  if (servedAt < state.servedAt - clocksDifferMs) return true
  state.completeThrough = Math.min(state.completeThrough, (servedAt - state.lagMs) * 1000)
  return false
}

/**
 * Fetches a page of the list that is read.
 * @throws as `fetchFresh`
 */
export async function fetchPage(
  reading: Reading,
  request: PageChoice & { ordering?: string },
): Promise<ListPage> {
  const page = await fetchFresh(reading, { ...request, filters: reading.filters })
  reading.count = page.count ?? reading.count
  if (page.count !== undefined) reading.state.size ??= page.count
  return page
}

/**
 * Requests a window until the answer is usable, at most three times.
 * @throws {ChainBroken | RequestsUsedUp}
 * @throws errors that no other window would avoid
 */
export async function askWindow(
  reading: Reading,
  choice: PageChoice,
  { descending = false } = {},
): Promise<Answer> {
  const { key, state } = reading
  const ordering = descending ? `-${key}` : key
  let wanted = choice
  let lastLength: number | undefined
  let reason = ''
  for (let time = 1; time <= maxTries; time++) {
    if (state.idle++ > mostIdle(reading.sizes))
      throw new ChainBroken(`${state.idle} requests in a row brought the read no further`)
    let page: ListPage
    try {
      page = await fetchPage(reading, { ...wanted, ordering })
    } catch (error) {
      return toAnswer(reading, error, wanted)
    }
    const { length } = page.records
    if (length === 0 && wanted.page > 1) return beyond(reading, wanted)
    if (reading.refused !== undefined && lowOf(wanted) >= lowOf(reading.refused)) reading.refused = undefined
    const follows = isFollowed(reading, page, wanted)
    const window = toWindow({ page, choice: wanted, key, descending, follows })
    if (typeof window !== 'string')
      // A last page that holds less than it counts may lack a record that was left out, or deleted since the count.
      return lacksRecords(window) ? { kind: 'beyond', low: window.low } : { kind: 'window', window }
    reason = window
    // The same length twice for the largest size: the service seems to have a lower cap; the next request shows.
    const { most } = reading.sizes
    if (follows && length === lastLength && length < most && wanted.page === 1 && wanted.pageSize === most) {
      if (length < leastCap) throw new ChainBroken(cappedTooLow(length))
      state.sizes = { least: Math.ceil(length / 2), most: length }
      wanted = { page: 1, pageSize: length }
    }
    lastLength = length
  }
  throw new ChainBroken(reason)
}

function toAnswer(reading: Reading, error: unknown, choice: PageChoice): Answer {
  if ((error instanceof NotFound || error instanceof Refused) && error.byService && choice.page > 1)
    return beyond(reading, choice, error instanceof Refused ? error.message : undefined)
  // An order that is refused is refused for page 1, too.
  if (error instanceof Refused && error.byService)
    throw new ChainBroken(`the list is not ordered: ${error.message}`)
  if (error instanceof BillingError && (error.retryable || error instanceof NotFound))
    return { kind: 'lost', error }
  throw error
}

/** The service has no such page, or refuses it. */
function beyond(reading: Reading, choice: PageChoice, message?: string): Answer {
  const low = lowOf(choice)
  const { count = 0, refused } = reading
  // Past the end, there is nothing to serve.
  if (low < count && (refused === undefined || low < lowOf(refused))) reading.refused = { ...choice, message }
  return { kind: 'beyond', low }
}

/** Why records cannot be reached that the service counts: it refuses the pages that hold them. */
export function whyUnserved({ count = 0, refused }: Reading): string | undefined {
  if (refused === undefined || count <= lowOf(refused)) return undefined
  const { page, pageSize, message } = refused
  return `the service counts ${count} records but refuses page ${page} of ${pageSize}${message === undefined ? '' : `: ${message}`}`
}

/** Checks a response; returns why it cannot be a window of the chain. */
function toWindow(of: {
  page: ListPage
  choice: PageChoice
  key: Key
  descending: boolean
  follows: boolean
}): Window | string {
  const { page, choice, key, descending, follows } = of
  const { records, count = 0 } = page
  const { length } = records
  if (length > choice.pageSize) return tooLong(choice, length)
  if (follows && length < choice.pageSize) return tooShort(choice, length, choice.pageSize)
  // A single page must hold all counted records; on a later page, deletes since the count are legitimate.
  if (choice.page === 1 && length < Math.min(choice.pageSize, count))
    return tooShort(choice, length, Math.min(choice.pageSize, count))
  const keys = toKeys({ records, key, descending })
  if (keys === undefined) return undatedReason(key)
  if (keys.some((value, index) => value < (keys[index - 1] ?? -Infinity)))
    return outOfOrder(choice, key, descending)
  return {
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
    follows,
    servedAt: page.servedAt,
  }
}

/** Whether the service says that another page follows. */
function isFollowed({ state }: Reading, { next, count }: ListPage, { page, pageSize }: PageChoice): boolean {
  if (next === null) return false
  if (typeof next === 'string') {
    if (URL.parse(next, 'http://service')?.searchParams.get('page') === String(page + 1)) return true
    state.seen.oddNext++
  }
  return count !== undefined && count > page * pageSize
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

function tooShort({ page, pageSize }: PageChoice, length: number, due: number): string {
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
