import { expect, test } from 'vitest'
import { Chance } from '../../../sandbox/data/random.ts'
import type { Fault } from '../../../sandbox/faults.ts'
import { connectTemporal, createWorld, startTestWorker, until, type World } from '../export/world.ts'
import {
  breakSome,
  idsOf,
  recoveryCsv,
  resume,
  resumesAsked,
  resumesDone,
  startRecovery,
  stateOf,
} from './world.ts'
import { kill, startWorkerProcess } from '../worker/worker-process.ts'

const seed = 20_261_121

const kills = Number(process.env['KILLS'] ?? 3)

/** `KILLS=20 RECOVERY_CANDIDATES=10000` takes some ten minutes. */
const chaos = {
  candidates: Number(process.env['RECOVERY_CANDIDATES'] ?? 50 + 50 * kills),
  kills,
  rate: Number(process.env['RECOVERY_RATE'] ?? 200),
}

const faults: Fault[] = [
  { kind: 'latency', ms: 5, jitterMs: 20 },
  { kind: 'reset', effect: 'done', rate: 0.03, on: resume },
  { kind: 'reset', effect: 'none', rate: 0.02, on: resume },
  { kind: 'error', status: 503, html: true, rate: 0.01, on: resume },
  { kind: 'error', status: 500, effect: 'done', rate: 0.01, on: resume },
  { kind: 'fallBack', rate: 0.1, on: resume },
  { kind: 'error', status: 502, html: true, rate: 0.01, on: 'GET /subscriptions/' },
]

/** How often one was resumed again without both a look after the resume before and one just before this. */
function resumesWithoutLooks(world: World, id: string): number {
  const line = stateOf(world, id).lines[0]?.id
  let [looks, unseen] = [2, 0]
  for (const { method, url } of world.sandbox.control.requests()) {
    if (method === 'GET' && url.includes(`lines=${line}&`)) looks += 1
    if (!url.includes(`/${id}/resume/`)) continue
    if (looks < 2) unseen += 1
    looks = 0
  }
  return unseen
}

test(
  `a recovery of ${chaos.candidates} whose worker is killed ends each in one outcome that the service agrees with (kills: ${kills}, seed ${seed})`,
  { timeout: 120_000 + 60_000 * kills, tags: ['soak'] },
  async () => {
    const { candidates, rate } = chaos
    const chance = new Chance(seed, kills)
    const subscriptions = candidates * 5
    const world = await createWorld({
      seed,
      needsAttention: 0,
      faults,
      counts: { customers: candidates, subscriptions, plans: 3, retentions: 0, orders: 0 },
    })
    const all = idsOf(world)
    const broken = breakSome(world, {
      ids: all.filter((_, index) => index % 5 === 2).slice(0, candidates),
      reason: 'gateway_issue',
    })
    const mark = world.sandbox.control.mark()
    const env = { BILLING_SETTLE_SECONDS: '0.5', BILLING_CONCURRENCY: '8' }
    let worker = await startWorkerProcess(world, env)
    const client = await connectTemporal()
    const run = await startRecovery({
      client,
      world,
      input: {
        approval: false,
        maxPages: 1_000,
        maxChanges: candidates - 20,
        requestsPerSecond: rate,
        verifyAfter: '100ms',
        firstWait: '1s',
        attempts: 3,
        maxFailureShare: 1,
      },
    })
    for (let killed = 1; killed <= kills; killed += 1) {
      const enough = world.sandbox.control.mark() + 5 + chance.below((1.4 * candidates) / (kills + 1))
      await until(() => world.sandbox.control.mark() >= enough)
      await kill(worker)
      if (killed < kills) worker = await startWorkerProcess(world, env)
    }
    await startTestWorker(world, env)
    const result = await run.result()
    const events = (await run.fetchHistory()).events ?? []
    const rows = await recoveryCsv(result)
    const [asked, done] = [resumesAsked(world), resumesDone(world)]
    const busiest = world.sandbox.control.counters().busiestSecond
    console.log(chaos, { counts: result.counts, outcomes: result.outcomes, busiest, events: events.length })

    // Each candidate has exactly one outcome, and the service's own rows agree with it.
    expect([...rows.keys()].toSorted()).toEqual(broken.toSorted())
    for (const id of broken) {
      const row = rows.get(id)
      const { status } = stateOf(world, id)
      expect({ id, outcome: row?.['outcome'], status }).toEqual({
        id,
        outcome: status === 'active' ? 'recovered' : expect.stringMatching(/^(attempts used up|not tried)$/),
        status,
      })
    }
    // None outside the snapshot, none above the cap, and none more often than it has attempts.
    expect(asked.filter((id) => !rows.has(id))).toEqual([])
    expect(new Set(asked).size).toBeLessThanOrEqual(candidates - 20)
    expect(result.counts.notTried).toBe(20)
    const times = Map.groupBy(asked, (id) => id)
    expect([...times.values()].filter(({ length }) => length > 3)).toEqual([])
    // Never twice in one attempt: between two resumes of one lies a look that found it fallen. One more may have
    // been written down than came, where a worker was killed in between.
    for (const [id, resumes] of times) {
      expect(resumes.length).toBeLessThanOrEqual(Number(rows.get(id)?.['attempts']))
      if (resumes.length > 1)
        expect({ id, unseen: resumesWithoutLooks(world, id) }).toEqual({ id, unseen: 0 })
    }
    expect(done.length).toBeLessThanOrEqual(asked.length)
    // Nothing else was changed.
    const effects = world.sandbox.control
      .effects({ after: mark })
      .filter(({ resource }) => resource === 'subscriptions')
    expect(effects.every(({ effect }) => effect === 'resume')).toBe(true)
    expect(result.counts.unknown).toBe(0)
    expect(events.length).toBeLessThan(2_000)
    expect(busiest).toBeLessThanOrEqual(rate + 1)
  },
)
