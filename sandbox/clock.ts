import { SECOND } from './data/times.ts'

/** The service's clock in microseconds: this machine's, shifted by a skew; strictly increasing. */
export class Clock {
  readonly #skew: number
  #last = 0

  constructor(skewSeconds: number) {
    this.#skew = skewSeconds * SECOND
  }

  /** Microseconds since 1970; every call returns a different value. */
  now(): number {
    const exact = Math.floor((performance.timeOrigin + performance.now()) * 1000) + this.#skew
    this.#last = Math.max(this.#last + 1, exact)
    return this.#last
  }

  nowMs(): number {
    return this.now() / 1000
  }
}
