import { setTimeout as wait } from 'node:timers/promises'
import { isStateAway } from '../../state/errors.ts'

/** How long an answer in hand waits for the state store. Without it, its row would be unknown, or parked for a person. */
const longestWaitMs = 300_000
const firstPauseMs = 100
const longestPauseMs = 1_000
/** Work that failed after this long has found the store in between. */
const outageMs = 30_000

/**
 * Does work with the state store, such as writing the outcome of a request, again while the store is away. Work whose
 * confirmation was lost is repeated, so it must have no further effect the second time.
 *
 * @throws the store's error after five minutes without it, or when the signal is aborted; any other error at once
 */
export async function whenStoreIsBack<T>(
  work: () => Promise<T>,
  { forMs = longestWaitMs, signal }: { forMs?: number; signal?: AbortSignal } = {},
): Promise<T> {
  let until = performance.now() + forMs
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    const from = performance.now()
    try {
      return await work()
    } catch (error) {
      const now = performance.now()
      if (now - from > outageMs) until = now + forMs
      if (!isStateAway(error) || now > until || signal?.aborted) throw error
      await wait(pauseMs, undefined, { ...(signal && { signal }) }).catch(() => undefined)
    }
  }
}
