import { BillingError, NotFound, Refused } from '../billing/errors.ts'
import type { ListPage } from '../billing/reply.ts'
import { fetchPage } from './fetch-window.ts'
import type { ReadStep } from './range-state.ts'
import type { Reading } from './reading.ts'
import { identityOf } from './record.ts'

type PageAnswer =
  | { kind: 'page'; page: ListPage }
  /** `counted`: by the answers until then. `error`: the page was refused, not said to be missing. */
  | { kind: 'end'; counted?: number | undefined; error?: Refused }
  | { kind: 'lost'; error: unknown }

const pagesBeyondCount = 50
/** How far a list is read that does not count its records. */
const mostUncounted = 10_000_000
const maxLostInARow = 3
/** Pages in a row that begin with a record with which an earlier one began. */
const maxRepeated = 20

/**
 * The fallback when the chain breaks: reads page after page until one is empty or does not exist, ignoring the
 * service's `next`. Records can slip through between two pages, so the result is never proven.
 *
 * It ends also where the service never does: some pages past its first count, or where pages come again.
 * @throws {RequestsUsedUp}
 */
export async function* readPages(reading: Reading): AsyncGenerator<ReadStep, void> {
  const { state } = reading
  const order: { ordering?: string } = { ordering: reading.key }
  const begun = new Set<string>()
  let [lostInARow, repeated, longestPage] = [0, 0, 1]
  for (;;) {
    const answer = await askPage(reading, order, state.page)
    if (answer.kind === 'end') {
      const { counted = 0, error } = answer
      const message = error === undefined ? '' : `: ${error.message}`
      if ((state.page - 1) * Math.max(reading.sizes.most, longestPage) < counted)
        reading.addReason(`the service counts ${counted} records but refuses page ${state.page}${message}`)
      return
    }
    if (answer.kind === 'lost') {
      reading.addReason(`page ${state.page} could not be read: ${String(answer.error)}`)
      if (++lostInARow >= maxLostInARow && !reading.isUsedUp) {
        // If the service is down, this says nothing about the list.
        const first = await askPage(reading, {}, 1)
        if (first.kind === 'lost') throw first.error
        reading.addReason(`${lostInARow} pages in a row could not be read although page 1 could`)
        return
      }
    } else {
      lostInARow = 0
      longestPage = Math.max(longestPage, answer.page.records.length)
      const first = identityOf(answer.page.records[0])
      repeated = begun.has(first) ? repeated + 1 : 0
      begun.add(first)
    }
    state.page++
    yield answer.kind === 'page' ? await reading.takePage(answer.page) : await reading.step()
    const { size = mostUncounted } = state
    const most = Math.ceil(size / longestPage) + pagesBeyondCount
    if (state.page > most)
      reading.addReason(
        `the list continued past page ${most}, although the service counted ${size} records at first`,
      )
    if (repeated >= maxRepeated)
      reading.addReason(
        `the service repeats pages: the ${repeated} before page ${state.page} had come before`,
      )
    if (state.page > most || repeated >= maxRepeated) return
  }
}

/** Requests a page. The order is dropped where the service refuses it: it may still list. */
async function askPage(reading: Reading, order: { ordering?: string }, page: number): Promise<PageAnswer> {
  try {
    const answer = await fetchPage(reading, { page, pageSize: reading.sizes.most, ...order })
    return answer.records.length === 0
      ? { kind: 'end', counted: answer.count }
      : { kind: 'page', page: answer }
  } catch (error) {
    if (error instanceof NotFound && error.byService && page > 1)
      return { kind: 'end', counted: reading.count }
    if (error instanceof BillingError && error.retryable) return { kind: 'lost', error }
    if (!(error instanceof Refused)) throw error
    if (order.ordering === undefined && page > 1) return { kind: 'end', counted: reading.count, error }
    if (order.ordering === undefined) throw error
    delete order.ordering
    return askPage(reading, order, page)
  }
}
