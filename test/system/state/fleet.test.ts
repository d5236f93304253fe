import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, expect, inject, onTestFinished, test } from 'vitest'
import { Random } from '../../chaos/random.ts'
import { type Fleet, type FreezePoint, freezePoints, startFleet } from '../../fleet/fleet.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'
import { connectTemporal, createWorld, until, type World } from '../export/world.ts'
import { addonsCsv, once, putFile, retentionsCsv, startImport, timesOf } from '../import/world.ts'

// The short form. The long one is `FLEET_SEED=1 npm run chaos:fleet`: three tests of about five minutes each.
const numberOf = (name: string, usual: number) => Number(process.env[name] ?? usual)
const isLong = process.env['FLEET_ROWS'] !== undefined
const seed = numberOf('FLEET_SEED', 20261122)
const rows = numberOf('FLEET_ROWS', 60)
const perSecond = numberOf('FLEET_RATE', isLong ? 20 : 10)
const workers = isLong ? 4 : 2

let postgres: Postgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
})
afterAll(() => postgres.close())

interface Plan {
  freezes: number
  points: readonly FreezePoint[]
  kills: number
  outages: number
  idleMs: number
}

/** Plays what strikes the workers, while an import of retentions and one of addons go on. */
async function play(plan: Plan) {
  const random = new Random(seed)
  const world = await createWorld({
    counts: { customers: 1, subscriptions: 0, plans: 0, retentions: 0, orders: 0 },
    faults: [
      { kind: 'latency', ms: 100, where: 'before', rate: 0.2 },
      { kind: 'latency', ms: 30, where: 'after' },
      // Lost replies: those are looked up.
      { kind: 'reset', effect: 'done', on: ['POST /retentions/', 'POST /addons/'], rate: 0.03 },
    ],
  })
  const env = {
    ...world.env,
    CONNECTOR_STATE_URL: url,
    BILLING_SETTLE_SECONDS: '0.5',
    BILLING_REQUESTS_PER_SECOND: `${perSecond}`,
    CONNECTOR_LOG_LEVEL: 'error',
  }
  const temporalAddress = inject('temporalAddress')
  const fleet = await startFleet({ env, workers, temporalAddress, idleMs: plan.idleMs })
  onTestFinished(() => fleet.close())
  const client = await connectTemporal()
  const start = async (kind: 'retentions' | 'addons', text: string) => {
    const file = await putFile(world, text, `${kind}.csv`)
    const input = { kind, file, verifyAfter: 0.5, canary: 0, maxFailureShare: 1, existing: 'refuse' as const }
    return await startImport({ client, world, input })
  }
  // None in the short form, so that the worker that is frozen sends what can be looked up, and sent again.
  const addonRows = isLong ? Math.ceil(rows / 10) : 0
  const runs = [await start('retentions', retentionsCsv(rows))]
  if (addonRows > 0) runs.push(await start('addons', addonsCsv(addonRows)))
  const results = Promise.all(runs.map((run) => run.result()))
  let isOver = false
  void results.catch(() => undefined).finally(() => (isOver = true))
  await until(() => timesOf(world, 'retentions', rows).some((times) => times > 0) || isOver)
  const strike = { fleet, plan, random, isOver: () => isOver }
  const areAllSent = () => timesOf(world, 'retentions', rows).every((times) => times > 0)
  const struck = await (isLong ? strikeAtRandom(strike) : strikeOnce(strike, areAllSent))
  const [retentions, addons] = await results
  console.log(
    JSON.stringify({ seed, rows, ...struck, retentions: retentions?.counts, addons: addons?.counts }),
  )
  return { world, struck, retentions, addons, addonRows }
}

interface Strike {
  fleet: Fleet
  plan: Plan
  random: Random
  isOver: () => boolean
}

async function stopPostgres(ms: number): Promise<void> {
  postgres.killAll()
  await wait(ms)
  await postgres.restart()
}

/** PostgreSQL is killed; then one worker is frozen until the other has sent all there is. */
async function strikeOnce({ fleet, plan, random }: Strike, areAllSent: () => boolean) {
  const point = random.pick(plan.points)
  await stopPostgres(1_000)
  const wake = await fleet.freeze({ point, isDeaf: true, withinMs: 60_000 })
  expect(wake, 'no worker was frozen').toBeDefined()
  await until(areAllSent)
  // Time for what it may have claimed to leave, while it does not hear that it was given up.
  await wake?.()
  return { [point]: 1, outages: 1, deaf: 1 }
}

/** All blows of the plan in a random order; two workers at most are frozen at a time, so that two go on. */
async function strikeAtRandom({ fleet, plan, random, isOver }: Strike) {
  const struck: Record<string, number> = { kills: 0, outages: 0, deaf: 0 }
  const left = { freezes: plan.freezes, kills: plan.kills, outages: plan.outages }
  let frozen = 0
  const freeze = async () => {
    const point = random.pick(plan.points)
    // Longer than the heartbeat, the takeover and both lookups, or shorter than each.
    const ms = random.happens(0.7) ? 14_000 + random.below(8_000) : 200 + random.below(6_000)
    const isDeaf = random.happens(1 / 3)
    const wake = await fleet.freeze({ point, isDeaf })
    if (wake === undefined) return
    await wait(ms)
    await wake()
    struck[point] = (struck[point] ?? 0) + 1
    if (isDeaf) struck['deaf'] = (struck['deaf'] ?? 0) + 1
  }
  const active = new Set<Promise<unknown>>()
  while (!isOver() && left.freezes + left.kills + left.outages > 0) {
    const kinds = (['freezes', 'kills', 'outages'] as const).filter((kind) => left[kind] > 0)
    const kind = random.pick(kinds)
    if (kind === 'freezes' && frozen < workers / 2) {
      left.freezes -= 1
      frozen += 1
      const one = freeze().finally(() => {
        frozen -= 1
        active.delete(one)
      })
      active.add(one)
    } else if (kind === 'kills') {
      left.kills -= 1
      if (await fleet.kill(random)) struck['kills'] = (struck['kills'] ?? 0) + 1
    } else if (kind === 'outages') {
      left.outages -= 1
      await stopPostgres(random.below(30_000))
      struck['outages'] = (struck['outages'] ?? 0) + 1
    }
    await wait(random.below(1_000))
  }
  await Promise.all(active)
  return struck
}

type Played = Awaited<ReturnType<typeof play>>

/** Each retention once, and no addon twice; those that are done are there. */
async function judge({ world, retentions, addons, addonRows }: Played) {
  expect(timesOf(world, 'retentions', rows)).toEqual(once(rows))
  expect(retentions).toMatchObject({ verdict: 'proven', counts: { done: rows, unknown: 0, staged: 0 } })
  const times = timesOf(world, 'addons', addonRows)
  expect(Math.max(0, ...times)).toBeLessThanOrEqual(1)
  const { done = 0, parked = 0 } = addons?.counts ?? {}
  expect(done + parked).toBe(addonRows)
  expect(times.filter((one) => one > 0).length).toBeGreaterThanOrEqual(done)
}

const outcomesOf = async (world: World, outcome: string) =>
  await askPostgres(
    url,
    `select run, "row" from "connector_${world.workspace}".changes where outcome = '${outcome}'`,
  )

test(`workers that are frozen at the points of a send, killed and cut off from PostgreSQL send each row once (seed ${seed})`, async () => {
  const played = await play({
    freezes: numberOf('FLEET_FREEZES', 1),
    points: isLong ? freezePoints.filter((point) => point !== 'afterLook') : ['afterClaim'],
    kills: numberOf('FLEET_KILLS', 0),
    outages: numberOf('FLEET_OUTAGES', 1),
    // Never closed: what a frozen worker has claimed must not leave late for another reason.
    idleMs: 120_000,
  })
  await judge(played)
  expect(await outcomesOf(played.world, 'doubled')).toEqual([])
}, 3_600_000)

test.runIf(isLong)(
  `a worker frozen just before the first byte finds its idle connection closed (seed ${seed})`,
  async () => {
    const freezes = numberOf('FLEET_FREEZES', 2)
    const played = await play({ freezes, points: ['afterLook'], kills: 0, outages: 0, idleMs: 3_000 })
    await judge(played)
  },
  3_600_000,
)

test.runIf(isLong)(
  `where idle connections stay open, each row that a frozen worker doubles is marked as doubled (seed ${seed})`,
  async () => {
    const freezes = numberOf('FLEET_FREEZES', 2)
    const { world } = await play({ freezes, points: ['afterLook'], kills: 0, outages: 0, idleMs: 120_000 })
    const doubled = () => timesOf(world, 'retentions', rows).filter((times) => times > 1).length
    await until(async () => (await outcomesOf(world, 'doubled'))?.length === doubled())
    console.log(JSON.stringify({ doubled: doubled() }))
  },
  3_600_000,
)
