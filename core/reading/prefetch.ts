import { cutBelow } from './page-choice.ts'
import { Margin } from './overlap-margin.ts'
import type { Answer, Source } from './source.ts'
import { lowOf } from './window.ts'

/** A window on its way, and the place it was meant to hold. */
export interface Flying {
  answer: Promise<Answer>
  low: number
  /** Where the frontier's newer neighbour was expected, without a margin. */
  expected: number
  margin: Margin
  /** Which window of the flight it is, and which one its place was told from while that was on its way. */
  number: number
  after: number | undefined
}

/**
 * Windows on their way down the list, several at once: each is chosen as if those before it found the list as it
 * was, and their margins follow what the links turn out to need.
 */
export class Flight {
  readonly #source: Source
  readonly #mostUnanswered: number
  readonly #mostAhead: number
  readonly #queue: Flying[] = []
  #unanswered = 0
  #sent = 0
  #taken: number | undefined
  /** From the frontier that is known; and from a window that is still on its way, whose ties are not. */
  readonly #known = new Margin()
  readonly #foretold = new Margin()

  /** `concurrency`: how many requests the client lets out at once. */
  constructor(source: Source, concurrency: number) {
    this.#source = source
    // A few stand ready at the client's gate: the service is not to wait until an answer has been worked on.
    this.#mostUnanswered = concurrency + Math.floor(concurrency / 4)
    this.#mostAhead = Math.floor(1.5 * concurrency)
  }

  /** The next window, with as many behind it as may be in flight; undefined where it can't be said which. */
  head(place: number | undefined): Flying | undefined {
    if (place !== undefined) this.#fill(place)
    return this.#queue[0]
  }

  /** The head has been looked at for the last time. */
  drop(): void {
    this.#queue.shift()
  }

  /** A window was taken: the head, or another one. */
  took(head: Flying | undefined): void {
    this.#taken = head?.number
  }

  /** Whether a window was placed by the one taken just before it, so that where it lies tells something. */
  wasMeant(head: Flying, place: number | undefined): boolean {
    return head.after === undefined ? head.expected === place : head.after === this.#taken
  }

  #fill(place: number): void {
    const tail = this.#queue.at(-1)
    if (!this.#mayAsk(tail)) return
    if (tail === undefined || place <= tail.low) this.#send(place, this.#known, undefined)
    this.#fillBehind()
  }

  #fillBehind(): void {
    for (let tail = this.#queue.at(-1); tail !== undefined && this.#mayAsk(tail); tail = this.#queue.at(-1))
      this.#send(tail.low + 1, this.#foretold, tail.number)
  }

  #mayAsk(tail: Flying | undefined): boolean {
    return (
      tail?.low !== 0 &&
      this.#unanswered < this.#mostUnanswered &&
      this.#queue.length < this.#mostAhead &&
      !this.#source.exhausted
    )
  }

  #send(expected: number, margin: Margin, after: number | undefined): void {
    const cut = cutBelow(expected, this.#source.sizes, margin.missed)
    const answer = this.#source.ask(cut)
    this.#unanswered++
    const answered = () => {
      this.#unanswered--
      this.#fillBehind()
    }
    // It may never be looked at, where the read is closed before.
    answer.then(answered, () => this.#unanswered--)
    this.#queue.push({
      answer,
      low: lowOf(cut),
      expected,
      margin,
      number: this.#sent++,
      after,
    })
  }
}
