import type { PageChoice } from './window.ts'

/** The page sizes to use. The API allows up to 100; a service may have a lower cap. */
export interface Sizes {
  least: number
  most: number
}

/** Sizes below 80 never reach further than the best of 80 to 100 does on average. */
export const usualSizes: Sizes = { least: 80, most: 100 }

/** A window that reaches down less than this may hold nothing new. */
const leastReach = 4

/**
 * Chooses the page that contains the place and reaches furthest below it: 87 places on average, so a list costs 1.15
 * requests per 100 records.
 */
export function choosePageBelow(place: number, sizes: Sizes): PageChoice {
  let best: PageChoice = { page: 1, pageSize: sizes.most }
  let furthest = -Infinity
  for (let pageSize = sizes.most; pageSize > leastReach; pageSize--) {
    // Smaller sizes only if none of the usual ones fits, which happens under a low cap.
    if (pageSize < sizes.least && furthest >= leastReach) break
    const page = Math.floor(place / pageSize) + 1
    const reach = place - (page - 1) * pageSize
    if (reach > furthest) [best, furthest] = [{ page, pageSize }, reach]
  }
  return best
}

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
  #tried = 0
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
    this.guess(this.#tried + retryOffset)
  }

  /** The next place to request, in a window that reaches down from it. */
  next(): number {
    this.tries++
    this.#tried = this.#choose()
    return this.#tried
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
