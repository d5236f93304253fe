/**
 * Seeded randomness: the same seed gives the same draws on every machine, so that a failed test can be
 * repeated.
 */

/** 32 bits that depend on every bit of both inputs (the finalizer of MurmurHash3). */
export function mix(seed: number, value: number): number {
  let bits = Math.imul(seed ^ 0x9e3779b9, 0x85ebca6b) ^ Math.imul(value + 1, 0xc2b2ae35)
  bits = Math.imul(bits ^ (bits >>> 16), 0x85ebca6b)
  bits = Math.imul(bits ^ (bits >>> 13), 0xc2b2ae35)
  return (bits ^ (bits >>> 16)) >>> 0
}

/** A stream of draws (mulberry32): small, fast, and good enough for data and drift. */
export class Chance {
  #state: number

  constructor(seed: number, stream = 0) {
    this.#state = mix(seed, stream)
  }

  /** From 0 up to, but excluding, 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0
    let bits = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state)
    bits = (bits + Math.imul(bits ^ (bits >>> 7), 61 | bits)) ^ bits
    return ((bits ^ (bits >>> 14)) >>> 0) / 4294967296
  }

  /** An integer from 0 up to, but excluding, `end`. */
  below(end: number): number {
    return Math.floor(this.fraction() * end)
  }

  happens(rate: number): boolean {
    return rate >= 1 || (rate > 0 && this.fraction() < rate)
  }

  pick<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T
  }

  shuffle(values: unknown[], from = 0, to = values.length): void {
    for (let last = to - 1; last > from; last--) {
      const other = from + this.below(last - from + 1)
      const moved = values[last]
      values[last] = values[other]
      values[other] = moved
    }
  }
}
