import { setTimeout as wait } from 'node:timers/promises'
import { BillingError } from './errors.ts'

/** The default number of tries before a read counts as lost. */
const defaultTries = 8
const firstWaitMs = 1000
const maxWaitMs = 30_000

/** The wait after a failed try (1, 2, ...): exponential with full jitter, at most 30 s. */
export function fullJitter(attempt: number, random: () => number = Math.random): number {
  return random() * Math.min(maxWaitMs, firstWaitMs * 2 ** (attempt - 1))
}

/**
 * Retries a read until it succeeds, fails for good, or has used up its tries. Retry-After is handled by the rate limiter,
 * which every try passes.
 */
export async function retryRead<T>(options: {
  read: (attempt: number) => Promise<T>
  waitMs: (attempt: number) => number
  tries?: number | undefined
  signal?: AbortSignal | undefined
}): Promise<T> {
  const { read, waitMs, signal, tries = defaultTries } = options
  for (let attempt = 1; ; attempt++) {
    try {
      return await read(attempt)
    } catch (error) {
      if (!(error instanceof BillingError) || !error.retryable || attempt >= tries) throw error
    }
    // Throw the signal's own reason, not the timer's error.
    await wait(waitMs(attempt), undefined, { signal }).catch(() => signal?.throwIfAborted())
  }
}
