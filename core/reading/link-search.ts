import type { Sizes } from './page-choice.ts'

/**
 * Looks for a border in a list that moves: the place where the keys rise above (or reach) a value.
 *
 * Asks at a guess first, then goes on in growing steps from what is known on one side, and halves what lies
 * between once both sides are known. What two windows say can contradict each other, because the list moved
 * between them: then the later one is believed.
 */
export class Search {
  tries = 0
  #guess: number | undefined
  #under = -1
  #over = Infinity
  #asked = 0
  readonly #reach: number
  #step: number

  /** The guess: where the first place beyond the border was last seen, or is thought to be. */
  constructor(sizes: Sizes, guess?: number) {
    this.#guess = guess
    // A window reaches from half to all of its size down: a step of this much leaves no gap that matters.
    this.#reach = Math.floor(sizes.most * 0.6)
    this.#step = this.#reach
  }

  /** All that this window holds lies before the border. */
  sawUnder(high: number): void {
    this.#under = high
    if (this.#over <= high) this.#over = Infinity
  }

  /** All that this window holds, or could hold, lies beyond it. */
  sawOver(low: number): void {
    this.#over = low
    if (this.#under >= low) this.#under = -1
  }

  /** It may be there. */
  guess(place: number): void {
    this.#guess = place
  }

  /** No answer came: near by, another window may be had. */
  sawNothing(): void {
    this.guess(this.#asked + nearBy)
  }

  /** The place to ask for next, in a window that reaches down from it. */
  next(): number {
    this.tries++
    this.#asked = this.#choose()
    return this.#asked
  }

  #choose(): number {
    const guess = this.#guess
    this.#guess = undefined
    if (guess !== undefined && guess > this.#under && guess <= this.#over) return guess
    if (this.#over === Infinity) return this.#under + this.#grow()
    if (this.#over - this.#under <= this.#reach) return this.#over
    if (this.#under === -1) return Math.max(0, this.#over - this.#grow() + this.#reach)
    return Math.floor((this.#under + this.#over + this.#reach) / 2)
  }

  #grow(): number {
    const step = this.#step
    this.#step *= 2
    return step
  }
}

const nearBy = 17
