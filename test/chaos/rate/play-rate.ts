import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Postgres } from '../../system/destinations/postgres-server.ts'
import type { Tally } from '../tally.ts'
import { disturb, mostInASecond, startRate } from './rate.ts'

const readers = { readers: 32 }
const writers = { writers: 32 }
/** What four workers ask for together. */
const loads = {
  'readers only': [readers, readers, readers, readers],
  'one writer': [{ ...writers }, readers, readers, readers],
  'both in each': Array.from({ length: 4 }, () => ({ ...readers, ...writers })),
}
const cases = [10, 100].flatMap((requestsPerSecond) =>
  Object.entries(loads).map(([load, workers]) => ({ requestsPerSecond, load, workers })),
)

/** The start and the first freeze are no steady load. */
const settlingMs = 2_000

/**
 * Freezes and kills four processes that share a rate on PostgreSQL for a while, and counts the requests that the service
 * gets. The seed also chooses the rate and the load: six seeds in a row play all.
 */
export async function playRate(options: {
  seed: number
  seconds: number
  postgres: Postgres
  tally: Tally
}): Promise<string[]> {
  const { seed, seconds, postgres, tally } = options
  const { requestsPerSecond, load, workers } = cases[seed % cases.length]!
  const url = await postgres.createDatabase()
  const rate = await startRate({ url, schema: 'connector_acc', requestsPerSecond, workers })
  try {
    const held = monitorEventLoopDelay({ resolution: 5 })
    held.enable()
    const from = performance.now()
    const { frozen, killed } = await disturb(rate, { ms: seconds * 1_000, seed, workers: workers.length })
    held.disable()
    const steady = rate.arrivals.filter(({ at }) => at > from + settlingMs)
    const steadySeconds = (performance.now() - from - settlingMs) / 1_000
    const most = mostInASecond(rate.arrivals)
    const reads = steady.filter(({ write }) => !write).length
    const percent = (share: number) => `${Math.round(share * 100)} %`
    console.log(
      `rate, seed ${seed}: ${requestsPerSecond}/s, ${load}, ${seconds} s: at most ${most} in a second, ` +
        `${percent(steady.length / steadySeconds / requestsPerSecond)} of the rate used, ` +
        `${percent(reads / steady.length)} of it reads; this process was held up for ${Math.round(held.max / 1e6)} ms`,
    )
    tally.add('rate: frozen', frozen)
    tally.add('rate: killed', killed)
    tally.add('rate: requests', rate.arrivals.length)
    // What arrives while this process is held up arrives all at once.
    const bunched = Math.ceil((held.max / 1e9) * requestsPerSecond)
    return most > requestsPerSecond + 1 + bunched
      ? [`rate, seed ${seed}: ${most} requests in a second of ${requestsPerSecond}`]
      : []
  } finally {
    await rate.close()
  }
}
