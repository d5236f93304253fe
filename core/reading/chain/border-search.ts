import type { Sizes } from '../pages/page-choice.ts'

/**
 * Searches a moving list for a border: the place where the keys rise above (or reach) a value.
 *
 * Tries a guess first, then grows its steps from the known side, and bisects once both sides are known. Two windows may
 * contradict each other, because the list moved between them; the later one wins.
 */
export class BorderSearch {
  tries = 0
  #guess: number | undefined
  #under = -1
  #over = Infinity
  #asked = 0
  readonly #reach: number
  #step: number

  /** `guess`: where the first place beyond the border was last seen, or is expected. */
  constructor(sizes: Sizes, guess?: number) {
    this.#guess = guess
    // A window reaches down by half to all of its size: steps of this size leave no significant gap.
    this.#reach = Math.floor(sizes.most * 0.6)
    this.#step = this.#reach
  }

  /** All records of a window lie before the border. */
  sawUnder(high: number): void {
    this.#under = high
    if (this.#over <= high) this.#over = Infinity
  }

  /** All records of a window, or all it could hold, lie beyond the border. */
  sawOver(low: number): void {
    this.#over = low
    if (this.#under >= low) this.#under = -1
  }

  /** Sets the next place to try. */
  guess(place: number): void {
    this.#guess = place
  }

  /** No answer came: tries a window nearby. */
  noAnswer(): void {
    this.guess(this.#asked + retryOffset)
  }

  /** The next place to request, in a window that reaches down from it. */
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

const retryOffset = 17
