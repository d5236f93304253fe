import { setTimeout as wait } from 'node:timers/promises'
import { isStateAway } from '../../state/errors.ts'

/** How long an answer in hand waits for the state store. Without it, its row would be unknown, or parked for a person. */
const longestWaitMs = 300_000
const firstPauseMs = 100
const longestPauseMs = 1_000

/**
 * Writes the outcome of a request, again while the state store is away. A write whose confirmation was lost is repeated,
 * so it must have no further effect the second time.
 *
 * @throws the store's error after five minutes; any other error at once
 */
export async function whenStoreIsBack<T>(
  write: () => Promise<T>,
  { forMs = longestWaitMs }: { forMs?: number } = {},
): Promise<T> {
  const until = performance.now() + forMs
  for (let pauseMs = firstPauseMs; ; pauseMs = Math.min(2 * pauseMs, longestPauseMs)) {
    try {
      return await write()
    } catch (error) {
      if (!isStateAway(error) || performance.now() > until) throw error
      await wait(pauseMs)
    }
  }
}
