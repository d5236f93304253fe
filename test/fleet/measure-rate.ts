/**
 * Measures the rate that several processes share, while they are frozen and killed: `npm run chaos:rate -- --seconds 60`.
 * Options: --rate (10 and 100 by default), --workers 4, --seconds 60, --seed 1, --calm (nothing is frozen or killed).
 */
import { setTimeout as wait } from 'node:timers/promises'
import { monitorEventLoopDelay } from 'node:perf_hooks'
import { parseArgs } from 'node:util'
import { startPostgres } from '../system/destinations/postgres-server.ts'
import { disturb, mostInASecond, startRate } from './rate.ts'

const { values } = parseArgs({
  options: {
    rate: { type: 'string', multiple: true, default: ['10', '100'] },
    workers: { type: 'string', default: '4' },
    seconds: { type: 'string', default: '60' },
    seed: { type: 'string', default: '1' },
    calm: { type: 'boolean', default: false },
  },
})
const workers = Number(values.workers)
const ms = Number(values.seconds) * 1000
const seed = Number(values.seed)

const readers = Array.from({ length: workers }, () => ({ readers: 32 }))
const oneWriter = readers.map((reader, index) => (index === 0 ? { writers: 32 } : reader))
const bothInEach = readers.map((reader) => ({ ...reader, writers: 32 }))

const postgres = await startPostgres()
try {
  for (const requestsPerSecond of values.rate.map(Number))
    for (const [name, doing] of Object.entries({ readers, oneWriter, bothInEach })) {
      const url = await postgres.createDatabase()
      const rate = await startRate({ url, schema: 'connector_acc', requestsPerSecond, workers: doing })
      try {
        const held = monitorEventLoopDelay({ resolution: 5 })
        held.enable()
        const from = performance.now()
        const disturbed = values.calm ? await wait(ms, {}) : await disturb(rate, { ms, seed, workers })
        const settled = rate.arrivals.filter(({ at }) => at > from + 2_000)
        const seconds = (performance.now() - from - 2_000) / 1000
        const writes = settled.filter(({ write }) => write).length
        console.log(
          JSON.stringify({
            seed,
            requestsPerSecond,
            workers,
            load: name,
            ...disturbed,
            used: Number((settled.length / seconds / requestsPerSecond).toFixed(3)),
            mostInASecond: mostInASecond(rate.arrivals),
            // What arrives while the service's process is held up arrives all at once.
            serviceHeldMs: Math.round(held.max / 1e6),
            readShare: Number((1 - writes / settled.length).toFixed(3)),
          }),
        )
      } finally {
        await rate.close()
      }
    }
} finally {
  await postgres.close()
}
