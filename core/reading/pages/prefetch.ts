import { choosePageBelow } from './page-choice.ts'
import { OverlapMargin } from '../chain/overlap-margin.ts'
import type { Answer, Source } from '../source.ts'
import { lowOf } from '../chain/window.ts'

/** A window in flight, and the place it should contain. */
export interface PrefetchedWindow {
  answer: Promise<Answer>
  /** Lets its response be parsed. */
  parse: () => void
  low: number
  /** The expected place of the frontier's newer neighbour, without a margin. */
  expected: number
  margin: OverlapMargin
  /** Number of this window, and of the window in flight from which its place was derived. */
  number: number
  after: number | undefined
}

/**
 * Prefetches windows down the list, several at once. Each is chosen as if the list did not change before it, with a
 * margin that follows what earlier links needed.
 */
export class Prefetch {
  readonly #source: Source
  readonly #end: number
  readonly #concurrency: () => number
  readonly #queue: PrefetchedWindow[] = []
  #unanswered = 0
  #sent = 0
  #taken: number | undefined
  /** The margins of windows chosen from the known frontier, and from a window in flight, whose ties are unknown. */
  readonly #known = new OverlapMargin()
  readonly #predicted = new OverlapMargin()

  /**
   * `concurrency`: how many requests the client has in flight at once, which may change. `end`: the place of the oldest record that is
   * wanted; windows derived from others in flight do not begin below it.
   */
  constructor(
    source: Source,
    { concurrency, end = 0 }: { concurrency: () => number; end?: number | undefined },
  ) {
    this.#source = source
    this.#end = end
    this.#concurrency = concurrency
  }

  /** The next window; also fills the queue behind it. Undefined if the place is unknown. */
  head(place: number | undefined): PrefetchedWindow | undefined {
    if (place !== undefined) this.#fill(place)
    this.#queue[0]?.parse()
    return this.#queue[0]
  }

  /** Removes the head. */
  drop(): void {
    this.#queue.shift()
  }

  /** Records that a window was taken: the head, or another one (undefined). */
  taken(head: PrefetchedWindow | undefined): void {
    this.#taken = head?.number
  }

  /** Whether a window's place was derived from the one taken just before it, so that its position is informative. */
  wasPredicted(head: PrefetchedWindow, place: number | undefined): boolean {
    return head.after === undefined ? head.expected === place : head.after === this.#taken
  }

  #fill(place: number): void {
    const tail = this.#queue.at(-1)
    if (!this.#mayAsk(tail)) return
    if (tail === undefined || place <= tail.low) this.#send(place, this.#known, undefined)
    this.#fillBehind()
  }

  #fillBehind(): void {
    for (;;) {
      const tail = this.#queue.at(-1)
      if (tail === undefined || tail.low < this.#end || !this.#mayAsk(tail)) return
      this.#send(tail.low + 1, this.#predicted, tail.number)
    }
  }

  #mayAsk(tail: PrefetchedWindow | undefined): boolean {
    const concurrency = this.#concurrency()
    return (
      tail?.low !== 0 &&
      // A few more wait in the client's queue, so that the service need not wait while an answer is processed.
      this.#unanswered < concurrency + Math.floor(concurrency / 4) &&
      this.#queue.length < Math.floor(1.5 * concurrency) &&
      !this.#source.exhausted
    )
  }

  #send(expected: number, margin: OverlapMargin, after: number | undefined): void {
    const choice = choosePageBelow(expected, this.#source.sizes, margin.missed)
    // Parsed when it is the head: the values of all windows in flight would outlive V8's young generation.
    const turn = Promise.withResolvers<void>()
    let isAnswered = false
    const arrived = () => {
      if (!isAnswered) this.#unanswered--
      isAnswered = true
    }
    const answered = () => {
      arrived()
      this.#fillBehind()
    }
    this.#unanswered++
    const awaitTurn = () => {
      answered()
      return turn.promise
    }
    const answer = this.#source.ask(choice, { awaitTurn })
    // It may never be awaited if the read is closed first.
    answer.then(answered, arrived)
    this.#queue.push({
      answer,
      parse: turn.resolve,
      low: lowOf(choice),
      expected,
      margin,
      number: this.#sent++,
      after,
    })
  }
}
