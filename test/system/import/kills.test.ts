import { describe, expect, test } from 'vitest'
import { Chance } from '../../../sandbox/data/random.ts'
import type { Fault } from '../../../sandbox/faults.ts'
import { connectTemporal, createWorld, startTestWorker, until } from '../export/world.ts'
import { kill, startWorkerProcess } from '../worker/worker-process.ts'
import { addonsCsv, posts, putFile, retentionsCsv, sheetOf, startImport, timesOf } from './world.ts'

const seed = 20_261_121

/** `KILLS=30 IMPORT_ROWS=10000` takes some ten minutes. */
const kills = Number(process.env['KILLS'] ?? 3)
const rows = Number(process.env['IMPORT_ROWS'] ?? 50 + 50 * kills)
const timeout = 90_000 + 30_000 * kills

const counts = { customers: 1, subscriptions: 0, plans: 3, retentions: 20, orders: 0 }

const faultsOn = (on: string): Fault[] => [
  { kind: 'latency', ms: 30, jitterMs: 40 },
  { kind: 'latency', ms: 2, jitterMs: 20, where: 'after', on },
  { kind: 'reset', effect: 'done', rate: 0.03, on },
  { kind: 'reset', effect: 'none', rate: 0.02, on },
]

/** Kills the worker whenever so many more requests have come, and starts the next one. */
async function importUnderKills(kind: 'retentions' | 'addons', text: string) {
  const chance = new Chance(seed, kills)
  const world = await createWorld({ seed, counts, faults: faultsOn(`POST /${kind}/`) })
  const startWorker = () => startWorkerProcess(world)
  let worker = await startWorker()
  const client = await connectTemporal()
  const input = { kind, file: await putFile(world, text), verifyAfter: 0.3, maxFailureShare: 1, canary: 0 }
  const run = await startImport({ client, world, input })
  for (let killed = 1; killed <= kills; killed += 1) {
    const enough = posts(world) + 1 + chance.below((1.5 * rows) / (kills + 1) - 10)
    await until(() => posts(world) >= enough)
    await kill(worker)
    if (killed < kills) worker = await startWorker()
  }
  await startTestWorker(world)
  return { world, run, result: await run.result() }
}

describe(
  `an import whose worker is killed at random moments (kills: ${kills}, seed ${seed})`,
  { timeout, tags: ['soak'] },
  () => {
    test(`makes each of ${rows} retentions exactly once, and proves it`, async () => {
      const { world, result, run } = await importUnderKills('retentions', retentionsCsv(rows))
      const { events } = await run.fetchHistory()
      console.log({ rows, kills, counts: result.counts, outcomes: result.outcomes, events: events?.length })
      expect(timesOf(world, 'retentions', rows).filter((times) => times !== 1)).toEqual([])
      expect(result).toMatchObject({ verdict: 'proven', counts: { done: rows } })
      expect(events?.length).toBeLessThan(120)
      // Sending goes before reading where workers have more to do than they can do at once.
      const sending = (events ?? []).flatMap(({ activityTaskScheduledEventAttributes: step }) =>
        step?.activityType?.name === 'sendImport' ? [step.priority?.priorityKey] : [],
      )
      expect(new Set(sending)).toEqual(new Set([1]))
    })

    test('makes no addon twice, and names those in doubt', async () => {
      const { world, result } = await importUnderKills('addons', addonsCsv(rows))
      const times = timesOf(world, 'addons', rows)
      expect(times.filter((count) => count > 1)).toEqual([])
      const results = await sheetOf(result, 'results')
      expect(results.filter((row, at) => row['_status'] === 'done' && times[at] !== 1)).toEqual([])
      expect(result.counts.done + result.counts.parked).toBe(rows)
      expect(result.counts.parked).toBeGreaterThan(0)
    })
  },
)
