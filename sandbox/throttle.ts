import type { FaultOf } from './faults.ts'

/** A token bucket, initially full. */
export class TokenBucket {
  readonly #perSecond: number
  readonly #size: number
  readonly #nowMs: () => number
  #tokens: number
  #filledAt: number

  constructor(options: { limit: FaultOf<'throttle'>; nowMs: () => number }) {
    this.#perSecond = options.limit.perSecond
    this.#size = options.limit.burst ?? Math.max(1, options.limit.perSecond)
    this.#nowMs = options.nowMs
    this.#tokens = this.#size
    this.#filledAt = this.#nowMs()
  }

  /** Takes a token and returns 0, or returns the seconds until there is one. */
  take(): number {
    const now = this.#nowMs()
    this.#tokens = Math.min(this.#size, this.#tokens + ((now - this.#filledAt) / 1000) * this.#perSecond)
    this.#filledAt = now
    if (this.#tokens < 1) return (1 - this.#tokens) / this.#perSecond
    this.#tokens -= 1
    return 0
  }
}

/** The header's value, rounded up to whole seconds: a token is available after that time. */
export function retryAfter(options: { seconds: number; form: 'seconds' | 'date'; nowMs: number }): string {
  if (options.form === 'seconds') return String(Math.ceil(options.seconds))
  return new Date(Math.ceil((options.nowMs + options.seconds * 1000) / 1000) * 1000).toUTCString()
}
