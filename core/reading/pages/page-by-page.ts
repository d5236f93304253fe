import { BillingError, NotFound, Refused } from '../../billing/errors.ts'
import type { ListPage } from '../../billing/reply.ts'
import type { Pass } from '../pass.ts'
import type { Reading } from '../reading.ts'
import type { ReadStep } from '../state.ts'

type PageAnswer =
  | { kind: 'page'; page: ListPage }
  | { kind: 'end' }
  | { kind: 'lost'; error: unknown }
  | { kind: 'capped' }

const pagesBeyondCount = 50
const maxLostInARow = 3

/**
 * The fallback when the chain breaks: reads page after page until one is empty or does not exist, ignoring the
 * service's `next`. Records can slip through between two pages, so the result is never proven.
 */
export async function* readPages(reading: Reading, pass: Pass): AsyncGenerator<ReadStep, void> {
  const { source } = pass
  const ahead = new PagesAhead(pass, reading.concurrency)
  let lostInARow = 0
  let longestPage = 1
  for (;;) {
    const answer = await ahead.next()
    if (answer.kind === 'capped') reading.state.capped = true
    if (answer.kind === 'capped' || answer.kind === 'end') return
    if (answer.kind === 'lost') {
      if (++lostInARow >= maxLostInARow) throw answer.error
      reading.addReason(`page ${pass.page} could not be read: ${String(answer.error)}`)
    } else {
      lostInARow = 0
      longestPage = Math.max(longestPage, answer.page.records.length)
    }
    pass.page++
    yield answer.kind === 'page' ? await pass.takePage(answer.page) : await pass.step()
    const most = Math.ceil((source.count ?? 0) / longestPage) + pagesBeyondCount
    if (pass.page > most) {
      reading.addReason(
        `the list continued past page ${most}, although the service counts ${source.count} records`,
      )
      return
    }
  }
}

/** Prefetches pages, several at once, and returns them in order. */
class PagesAhead {
  readonly #pass: Pass
  readonly #maxAhead: number
  readonly #queue: Promise<PageAnswer>[] = []
  #ordering: string | undefined

  constructor(pass: Pass, most: number) {
    this.#pass = pass
    this.#maxAhead = Math.max(1, most)
    this.#ordering = pass.source.key
  }

  /** The answer for the pass's next page. */
  async next(): Promise<PageAnswer> {
    const { page, source } = this.#pass
    while (this.#queue.length < this.#maxAhead && !source.exhausted) {
      const answer = this.#ask(page + this.#queue.length)
      // It may never be awaited if the list ends before this page.
      answer.catch(() => undefined)
      this.#queue.push(answer)
    }
    try {
      return (await this.#queue.shift()) ?? { kind: 'capped' }
    } catch (error) {
      // A service that refuses the ordering may still list.
      if (!(error instanceof Refused) || this.#ordering === undefined) throw error
      this.#ordering = undefined
      this.#queue.length = 0
      return this.next()
    }
  }

  async #ask(page: number): Promise<PageAnswer> {
    const { source } = this.#pass
    const order = this.#ordering === undefined ? {} : { ordering: this.#ordering }
    try {
      const answer = await source.page({ page, pageSize: source.sizes.most, ...order })
      return answer.records.length === 0 ? { kind: 'end' } : { kind: 'page', page: answer }
    } catch (error) {
      if (error instanceof NotFound && error.byService && page > 1) return { kind: 'end' }
      if (error instanceof BillingError && error.retryable) return { kind: 'lost', error }
      throw error
    }
  }
}
