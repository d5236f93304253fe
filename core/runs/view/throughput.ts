/** So much was done up to a moment (ms since 1970). */
export interface Point {
  at: number
  done: number
}

/** How many were done in each stretch of time: plain JSON, of a bounded size however long it took. */
export interface PaceState {
  widthMs: number
  /** By the number of the stretch since 1970. */
  counts: Record<string, number>
}

const mostStretches = 120
const leastWidthMs = 250

/** Counts what is done over time. Stretches become twice as long whenever they become too many. */
export class Pace {
  #widthMs: number
  #counts: Map<number, number>

  constructor({ widthMs, counts }: PaceState = { widthMs: leastWidthMs, counts: {} }) {
    this.#widthMs = widthMs
    this.#counts = new Map(Object.entries(counts).map(([stretch, count]) => [Number(stretch), count]))
  }

  add(at: number, count = 1): void {
    if (count === 0) return
    this.#count(Math.floor(at / this.#widthMs), count)
    while (this.#span() > mostStretches) this.#widen()
  }

  state(): PaceState {
    return { widthMs: this.#widthMs, counts: Object.fromEntries(this.#counts) }
  }

  /** From nothing to all, at the ends of the stretches in which something was done. */
  points(): Point[] {
    const stretches = [...this.#counts.keys()].toSorted((a, b) => a - b)
    const [first] = stretches
    if (first === undefined) return []
    const points: Point[] = [{ at: first * this.#widthMs, done: 0 }]
    for (const stretch of stretches) {
      const { at, done } = points.at(-1)!
      const begun = stretch * this.#widthMs
      // Nothing was done in between.
      if (begun > at) points.push({ at: begun, done })
      points.push({ at: begun + this.#widthMs, done: done + (this.#counts.get(stretch) ?? 0) })
    }
    return points
  }

  #count(stretch: number, count: number): void {
    this.#counts.set(stretch, (this.#counts.get(stretch) ?? 0) + count)
  }

  #span(): number {
    let [least, most] = [Infinity, -Infinity]
    for (const stretch of this.#counts.keys()) {
      least = Math.min(least, stretch)
      most = Math.max(most, stretch)
    }
    return most - least + 1
  }

  #widen(): void {
    const narrow = this.#counts
    this.#widthMs *= 2
    this.#counts = new Map()
    for (const [stretch, count] of narrow) this.#count(Math.floor(stretch / 2), count)
  }
}
