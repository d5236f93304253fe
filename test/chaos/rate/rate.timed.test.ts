import { monitorEventLoopDelay } from 'node:perf_hooks'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { startPostgres, type Postgres } from '../../system/destinations/postgres-server.ts'
import { until } from '../../system/export/world.ts'
import { disturb, mostInASecond, startRate } from './rate.ts'

// The long form is `npm run chaos:rate`.

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.close())

async function start(options: Omit<Parameters<typeof startRate>[0], 'url' | 'schema'>) {
  const url = await postgres.createDatabase()
  const rate = await startRate({ url, schema: 'connector_acc', ...options })
  onTestFinished(() => rate.close())
  return rate
}

test(
  'workers that are frozen and killed send at most r + 1 requests in any second together (seed 1)',
  { tags: ['long'] },
  async () => {
    const busy = { readers: 4, writers: 4 }
    const rate = await start({ requestsPerSecond: 10, workers: [busy, busy, busy] })
    await until(() => rate.arrivals.length > 30)
    const from = performance.now()
    const held = monitorEventLoopDelay({ resolution: 5 })
    held.enable()
    await disturb(rate, { ms: 4_000, seed: 1, workers: 3 })
    held.disable()
    const seconds = (performance.now() - from) / 1000
    const used = rate.arrivals.filter(({ at }) => at > from).length / seconds / 10
    console.log({ used, most: mostInASecond(rate.arrivals), serviceHeldMs: held.max / 1e6 })
    // What arrives while this process is held up arrives all at once.
    const bunched = Math.floor((held.max / 1e9) * 10)
    expect(mostInASecond(rate.arrivals)).toBeLessThanOrEqual(11 + bunched)
    // The share of one that was killed is lost for ten seconds, and one is always frozen.
    expect(used).toBeGreaterThan(0.2)
    const reads = rate.arrivals.filter(({ at, write }) => at > from && !write).length
    expect(reads / seconds / 10).toBeLessThan(0.1)
  },
)

test(
  'a Retry-After that one worker gets stops all of them, and its 429 slows it down',
  { tags: ['long'] },
  async () => {
    const busy = { readers: 8 }
    const rate = await start({ requestsPerSecond: 50, latencyMs: 10, workers: [busy, busy, busy] })
    await until(() => rate.arrivals.length > 50)
    rate.service.refusing = { once: true, headers: { 'retry-after': '2' } }
    await until(() => rate.refusedAt.length > 0)
    const [at = 0] = rate.refusedAt
    await wait(at + 3_000 - performance.now())
    const between = (from: number, to: number) =>
      rate.arrivals.filter((arrival) => arrival.at > at + from && arrival.at < at + to)
    // The others know of it half a second later, when they renew their shares.
    expect(between(1_000, 1_900)).toEqual([])
    const resumed = between(2_000, 3_000).length
    // Half of a third of the rate is held back.
    expect(resumed).toBeGreaterThan(10)
    expect(resumed).toBeLessThan(48)
  },
)
