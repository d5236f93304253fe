import { BillingError, NotFound, Refused } from '../billing/errors.ts'
import type { ListPage } from '../billing/reply.ts'
import type { Pass } from './pass.ts'
import type { Reading } from './reading.ts'
import type { ReadStep } from './state.ts'

type PageAnswer =
  | { kind: 'page'; page: ListPage }
  | { kind: 'end' }
  | { kind: 'lost'; error: unknown }
  | { kind: 'capped' }

const pagesBeyondCount = 50
const mostLostInARow = 3

/**
 * Where no chain holds: page after page from the first to one that is empty or does not exist, never by what the
 * service calls the next one. Records can slip through between two pages, so this is never proven.
 */
export async function* readPages(reading: Reading, pass: Pass): AsyncGenerator<ReadStep, void> {
  const { source } = pass
  const ahead = new PagesAhead(pass, reading.options.concurrency)
  let lostInARow = 0
  let mostHeld = 1
  for (;;) {
    const answer = await ahead.next()
    if (answer.kind === 'capped') reading.state.capped = true
    if (answer.kind === 'capped' || answer.kind === 'end') return
    if (answer.kind === 'lost') {
      if (++lostInARow >= mostLostInARow) throw answer.error
      reading.because(`page ${pass.page} could not be read: ${String(answer.error)}`)
    } else {
      lostInARow = 0
      mostHeld = Math.max(mostHeld, answer.page.records.length)
    }
    pass.page++
    yield answer.kind === 'page' ? await pass.takePage(answer.page) : await pass.step()
    const most = Math.ceil((source.count ?? 0) / mostHeld) + pagesBeyondCount
    if (pass.page > most) {
      reading.because(`the list went on past page ${most}, while the service counts ${source.count} records`)
      return
    }
  }
}

/** Pages on their way, several at once, handed out in turn. */
class PagesAhead {
  readonly #pass: Pass
  readonly #most: number
  readonly #queue: Promise<PageAnswer>[] = []
  #ordering: string | undefined

  constructor(pass: Pass, most: number) {
    this.#pass = pass
    this.#most = Math.max(1, most)
    this.#ordering = pass.source.key
  }

  /** The answer for the pass's next page. */
  async next(): Promise<PageAnswer> {
    const { page, source } = this.#pass
    while (this.#queue.length < this.#most && !source.exhausted) {
      const answer = this.#ask(page + this.#queue.length)
      // It may never be looked at, where the list ends before.
      answer.catch(() => undefined)
      this.#queue.push(answer)
    }
    try {
      return (await this.#queue.shift()) ?? { kind: 'capped' }
    } catch (error) {
      // A service that refuses to order may still list.
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
