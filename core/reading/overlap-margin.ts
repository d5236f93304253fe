/**
 * How many places further up than expected a window has to reach, so that it links.
 *
 * Places shift between two requests, and how many records tie at the end of a window isn't known while it is on
 * its way. Too little costs a request for another window, too much costs places of every window, so what the
 * last links turned out to need is remembered: less than nothing, where deletes draw the list down.
 */
export class Margin {
  readonly #needs = new Map<number, number>([[0, 4]])
  #all = 4

  /** A link turned out to need this many places more than expected. */
  learn(need: number): void {
    this.#all = 1
    for (const [other, weight] of this.#needs) {
      // Halves what was learned 69 links ago: long enough to know the rare ones, short enough to forget a burst.
      const faded = weight * 0.99
      if (faded < 0.01) this.#needs.delete(other)
      else this.#needs.set(other, faded)
      this.#all += faded
    }
    this.#needs.set(need, (this.#needs.get(need) ?? 0) + 1)
  }

  /** Of one link, the part that needs more than this margin. */
  readonly missed = (margin: number): number => {
    let more = 0
    for (const [need, weight] of this.#needs) if (need > margin) more += weight
    return more / this.#all
  }
}
