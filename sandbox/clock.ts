import { SECOND } from './data/times.ts'

/** The service's clock: this machine's, moved by a skew, in microseconds; it never stands still or goes back. */
export class Clock {
  readonly #skew: number
  #last = 0

  constructor(skewSeconds: number) {
    this.#skew = skewSeconds * SECOND
  }

  /** Microseconds since 1970; no two calls give the same. */
  now(): number {
    const exact = Math.floor((performance.timeOrigin + performance.now()) * 1000) + this.#skew
    this.#last = Math.max(this.#last + 1, exact)
    return this.#last
  }

  nowMs(): number {
    return this.now() / 1000
  }
}
