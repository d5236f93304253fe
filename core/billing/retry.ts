import { setTimeout as wait } from 'node:timers/promises'
import { BillingError } from './errors.ts'

/** A read counts as lost after this many tries, unless it says itself. */
const usualTries = 8
const firstWaitMs = 1000
const longestWaitMs = 30_000

/** The wait after a failed try (1, 2, ...): exponential with full jitter, at most 30 s. */
export function fullJitter(attempt: number, random: () => number = Math.random): number {
  return random() * Math.min(longestWaitMs, firstWaitMs * 2 ** (attempt - 1))
}

/**
 * Tries a read until it succeeds, fails for good, or has failed so many times. What the service asks for by
 * Retry-After is waited for at the rate limit, which every try goes through anyway.
 */
export async function retryRead<T>(options: {
  read: (attempt: number) => Promise<T>
  waitMs: (attempt: number) => number
  tries?: number | undefined
  signal?: AbortSignal | undefined
}): Promise<T> {
  const { read, waitMs, signal, tries = usualTries } = options
  for (let attempt = 1; ; attempt++) {
    try {
      return await read(attempt)
    } catch (error) {
      if (!(error instanceof BillingError) || !error.retryable || attempt >= tries) throw error
    }
    // The signal's own reason goes to the caller, not the timer's error about it.
    await wait(waitMs(attempt), undefined, { signal }).catch(() => signal?.throwIfAborted())
  }
}
