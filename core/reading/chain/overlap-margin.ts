/**
 * The overlap margin: how many places further up than expected a window must reach in order to link.
 *
 * Places shift between two requests, and the number of ties at the end of a window is unknown while it is in flight.
 * Too small a margin costs another request, too large a margin shortens every window, so it follows what recent links
 * needed. The need can be negative when deletes shift the list.
 */
export class OverlapMargin {
  readonly #needs = new Map<number, number>([[0, 4]])
  #all = 4

  /** Records that a link needed this many places more than expected. */
  learn(need: number): void {
    this.#all = 1
    for (const [other, weight] of this.#needs) {
      // The half-life is 69 links: long enough to learn rare needs, short enough to forget a burst.
      const faded = weight * 0.99
      if (faded < 0.01) this.#needs.delete(other)
      else this.#needs.set(other, faded)
      this.#all += faded
    }
    this.#needs.set(need, (this.#needs.get(need) ?? 0) + 1)
  }

  /** The share of links that need more than this margin. */
  readonly missed = (margin: number): number => {
    let more = 0
    for (const [need, weight] of this.#needs) if (need > margin) more += weight
    return more / this.#all
  }
}
