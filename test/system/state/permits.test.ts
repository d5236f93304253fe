import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import type { PermitRequest } from '../../../core/billing/permits.ts'
import { openState } from '../../../core/state/open.ts'
import { temporaryFolder } from '../../core/state/temporary-folder.ts'
import { askPostgres, startPostgres, type Postgres } from '../destinations/postgres-server.ts'

let postgres: Postgres
let url: string
beforeAll(async () => {
  postgres = await startPostgres()
  url = await postgres.createDatabase()
})
afterAll(() => postgres.close())

let made = 0
/** The permits of several workers, after the second in which a new table gives none. */
async function openPermits(workers = 1) {
  const schema = `connector_rate_${++made}`
  const open = async () => {
    const state = await openState({ folder: await temporaryFolder(), database: { url, schema } })
    onTestFinished(() => state.close())
    if (state.permits === undefined) throw new Error('no permits')
    return state.permits
  }
  const permits = []
  for (let index = 0; index < workers; index += 1) permits.push(await open())
  const run = (statement: string) => askPostgres(url, `set search_path = ${schema}; ${statement}`)
  await permits[0]?.take(read)
  /** As if nothing had been asked for a long time. */
  const rest = () =>
    run(
      `update rates set next_at = now() - interval '1 minute', writers_until = '-infinity' where name = 'all'`,
    )
  await rest()
  const seeFactor = async () => {
    const rows = await askPostgres(url, `select factor from ${schema}.rates where name = 'all'`)
    return Number(rows?.[0]?.['factor'])
  }
  return { permits, run, rest, seeFactor }
}

const read = {
  requestsPerSecond: 10,
  run: undefined,
  wanted: 4,
  write: false,
  leftWaiting: false,
  waitedMs: 1_000,
}
const write = { ...read, write: true }

test('the first request of a new state does not wait; after a crash, the second without permits begins when a state is opened', async () => {
  const schema = `connector_rate_${++made}`
  const options = { folder: await temporaryFolder(), database: { url, schema } }
  const seeNextAt = async () => {
    const rows = await askPostgres(url, `select next_at::text as at from ${schema}.rates where name = 'all'`)
    return String(rows?.[0]?.['at'])
  }
  const open = async () => {
    const state = await openState(options)
    onTestFinished(() => state.close())
    return state.permits
  }
  const one = await open()
  expect((await one?.take(read))?.waitsMs).not.toEqual([])
  // What a crash leaves of an unlogged table.
  await askPostgres(url, `truncate ${schema}.rates`)
  const since = performance.now()
  const other = await open()
  const nextAt = await seeNextAt()
  const grant = await other?.take(read)
  expect(grant?.waitsMs).toEqual([])
  expect(grant?.retryMs).toBeLessThanOrEqual(1_000)
  expect(grant?.retryMs).toBeGreaterThan(900 - (performance.now() - since))
  await open()
  expect(await seeNextAt()).toBe(nextAt)
})

test('an empty table gives no permit for a second, which makes up for what was sent before a crash', async () => {
  const { permits, run } = await openPermits()
  await run('truncate rates')
  const [first] = permits
  expect(await first?.take(read)).toMatchObject({ waitsMs: [], retryMs: 1000 })
  const again = await first?.take(read)
  expect(again?.waitsMs).toEqual([])
  expect(again?.retryMs).toBeGreaterThan(500)
})

test('permits are one interval apart, whichever worker asks, and none is given far ahead', async () => {
  const { permits, rest } = await openPermits(2)
  await rest()
  const from = performance.now()
  const grants = []
  for (const one of [...permits, ...permits]) grants.push(await one.take({ ...read, requestsPerSecond: 40 }))
  const waits = grants.flatMap(({ waitsMs }) => waitsMs)
  // The first was due 15 ms ago at most, and 100 ms ahead was the most, since its worker was alone; the interval is 25 ms.
  expect(waits[0]).toBeCloseTo(-15, 0)
  expect(waits.length).toBeGreaterThanOrEqual(3)
  expect(waits.length).toBeLessThanOrEqual(1 + (performance.now() - from + 130) / 25)
  const [first, ...later] = grants.map((grant) => Math.max(...grant.waitsMs))
  expect(first).toBeLessThanOrEqual(100)
  for (const last of later) expect(last).toBeLessThanOrEqual(50)
  const numbers = grants.flatMap(({ first, waitsMs }) => waitsMs.map((_, index) => first + index))
  expect(numbers).toEqual(numbers.map((_, index) => (numbers[0] ?? 0) + index))
})

test('a worker that is alone gets as much of the rate as it can use in time, and several get less as soon as they ask', async () => {
  const { permits, run, rest } = await openPermits(2)
  const [one, other] = permits
  const step = async (of = one) => {
    await rest()
    const grant = await of?.take({ ...read, requestsPerSecond: 40 })
    const [first = 0, second = 0] = grant?.waitsMs ?? []
    return { workers: grant?.workers, perSecond: Number((1_000 / (second - first)).toFixed(1)) }
  }
  expect(await step()).toEqual({ workers: 1, perSecond: 39.4 })
  expect(await step(other)).toEqual({ workers: 2, perSecond: 38.5 })
  expect(await step()).toEqual({ workers: 2, perSecond: 38.5 })
  // It uses its permits sooner for a second, before it gets more of them.
  const silentFor = (seconds: number) =>
    run(`update rate_workers set seen_at = now() - interval '${seconds} s'`)
  await silentFor(10.2)
  expect(await step()).toEqual({ workers: 1, perSecond: 38.5 })
  await silentFor(11)
  expect(await step()).toEqual({ workers: 1, perSecond: 39.4 })
})

test('a worker that is alone gets what comes due within 100 ms beyond what it wants, unless a run has its own rate; one of several does not', async () => {
  const { permits, rest } = await openPermits(2)
  const [one, other] = permits
  const ask = { ...write, requestsPerSecond: 100, wanted: 1 }
  const gets = async (of = one, options: Partial<PermitRequest> = {}, aheadMs = 100) => {
    await rest()
    const grant = await of?.take({ ...ask, ...options })
    expect(Math.max(...(grant?.waitsMs ?? []))).toBeLessThanOrEqual(aheadMs)
    return grant?.waitsMs.length
  }
  // From 15 ms ago, 10.2 ms apart.
  expect(await gets()).toBe(12)
  const run = { name: 'import-1', requestsPerSecond: 1_000 }
  expect(await gets(one, { run }, 50)).toBe(1)
  expect(await gets(one, { requestsPerSecond: 10_000 })).toBe(101)
  await gets(other)
  expect([await gets(one, {}, 50), await gets(other, {}, 50)]).toEqual([1, 1])
})

test('a permit is not due before its request began to wait, so that it is valid for long', async () => {
  const { permits, rest } = await openPermits()
  for (const [waitedMs, due] of [
    [0, 0],
    [4, -4],
    [1_000, -15],
  ] as const) {
    await rest()
    const grant = await permits[0]?.take({ ...write, requestsPerSecond: 1_000, waitedMs })
    expect(grant?.waitsMs[0]).toBeCloseTo(due, 5)
  }
})

test('while a write waits, a read gets a permit only when it is due, and a write one that is due soon', async () => {
  const { permits, run, rest } = await openPermits(2)
  const [one, other] = permits
  const manyWaits = async (ask: typeof read) => {
    const waits: number[] = []
    for (let index = 0; index < 20; index += 1) {
      await run(`update rates set writers_until = now() + interval '1 minute'`)
      waits.push(...((await other?.take({ ...ask, requestsPerSecond: 100, wanted: 9 }))?.waitsMs ?? []))
    }
    return waits
  }
  await one?.take({ ...read, requestsPerSecond: 100 })
  expect(Math.max(...(await manyWaits(read)))).toBeLessThanOrEqual(0)
  await rest()
  expect(Math.max(...(await manyWaits(write)))).toBeGreaterThan(20)
})

test('a write that has to wait keeps reads from the next permit', async () => {
  const { permits, run } = await openPermits(2)
  const [one, other] = permits
  const seconds = { requestsPerSecond: 0.5 }
  await run(`update rates set next_at = clock_timestamp() + interval '1 s'`)
  await one?.take({ ...write, ...seconds })
  await run(`update rates set next_at = clock_timestamp() + interval '10 ms'`)
  for (let index = 0; index < 3; index += 1)
    for (const waitMs of (await other?.take({ ...read, ...seconds }))?.waitsMs ?? [])
      expect(waitMs).toBeLessThanOrEqual(0)
})

test('a 429 halves the rate of all workers once, for all permits that were given before', async () => {
  const { permits, rest, seeFactor } = await openPermits(2)
  const [one, other] = permits
  const grant = await one?.take({ ...read, requestsPerSecond: 100 })
  const last = (grant?.first ?? 0) + (grant?.waitsMs.length ?? 0) - 1
  await Promise.all([one?.slowDown(last), other?.slowDown(last), one?.slowDown(last - 1)])
  expect(await seeFactor()).toBe(0.5)
  await rest()
  const after = await other?.take({ ...read, requestsPerSecond: 100 })
  const [first = 0, second = 0] = after?.waitsMs ?? []
  expect(second - first).toBeGreaterThan(18)
  await other?.slowDown((after?.first ?? 0) + 1)
  expect(await seeFactor()).toBeLessThan(0.3)
})

test('a pause that one worker was asked for holds all, and a longer one is not shortened', async () => {
  const { permits, rest } = await openPermits(2)
  const [one, other] = permits
  await one?.pause(60_000)
  await one?.pause(1_000)
  await rest()
  const grant = await other?.take(write)
  expect(grant?.waitsMs).toEqual([])
  expect(grant?.retryMs).toBeGreaterThan(55_000)
})

test('a pause that is asked for after PostgreSQL has lost the rates holds all', async () => {
  const { permits, run } = await openPermits(2)
  await run('truncate rates')
  await permits[0]?.pause(60_000)
  const grant = await permits[1]?.take(write)
  expect(grant?.waitsMs).toEqual([])
  expect(grant?.retryMs).toBeGreaterThan(55_000)
})

test('a run’s own rate holds back that run alone', async () => {
  const { permits, rest } = await openPermits(2)
  const [one, other] = permits
  const slow = { ...read, run: { name: 'export-1', requestsPerSecond: 0.5 } }
  expect((await one?.take(slow))?.waitsMs).toHaveLength(1)
  await rest()
  const held = await other?.take(slow)
  expect(held).toMatchObject({ waitsMs: [], heldByRun: true })
  expect(held?.retryMs).toBeGreaterThan(1_000)
  expect((await other?.take(read))?.waitsMs.length).toBeGreaterThan(0)
})

test('two requests of a run are never closer than its own rate allows, however late the one before got its permit', async () => {
  const { permits, run, rest } = await openPermits()
  const [one] = permits
  const ask = { ...read, requestsPerSecond: 1_000, run: { name: 'import-1', requestsPerSecond: 10 } }
  await one?.take(ask)
  await rest()
  // Its own rate has allowed it for long, and the rate of all allows it in 40 ms only.
  await run(`update rates set next_at = now() - interval '1 s' where name <> 'all';
    update rates set next_at = clock_timestamp() + interval '40 ms' where name = 'all'`)
  const asked = performance.now()
  const [dueIn = 0] = (await one?.take(ask))?.waitsMs ?? []
  const held = await one?.take(ask)
  expect(held).toMatchObject({ heldByRun: true, waitsMs: [] })
  const next = performance.now() + (held?.retryMs ?? 0)
  expect(next - (asked + dueIn)).toBeGreaterThan(100)
})

test('of workers with different rates the lowest applies, while its worker is alive', async () => {
  const { permits, run, rest } = await openPermits(2)
  const [slow, fast] = permits
  await slow?.take({ ...read, requestsPerSecond: 1 })
  await rest()
  expect(await fast?.take({ ...read, requestsPerSecond: 100 })).toMatchObject({
    workers: 2,
    waitsMs: [expect.any(Number)],
  })
  await run(`update rate_workers set seen_at = now() - interval '11 s' where per_second = 1`)
  await rest()
  const alone = await fast?.take({ ...read, requestsPerSecond: 100 })
  expect(alone).toMatchObject({ workers: 1 })
  expect(alone?.waitsMs.length).toBeGreaterThan(4)
})

test('a clock that was set back holds the permits for a second, not until it is there again', async () => {
  const { permits, run } = await openPermits()
  const [one] = permits
  await run(`update rates set next_at = now() + interval '1 hour'`)
  expect((await one?.take(write))?.retryMs).toBeLessThan(1_100)
  await run(`update rates set next_at = clock_timestamp() + interval '1 s'`)
  expect((await one?.take(write))?.retryMs).toBeLessThan(1_100)
})

// Last, because it takes the server away from the others.
test('a pause that the service has asked for outlives a crash of PostgreSQL', async () => {
  const { permits } = await openPermits(2)
  const [one, other] = permits
  await one?.pause(60_000)
  postgres.killAll()
  await postgres.restart()
  const grant = await other?.take(write).catch(() => other.take(write))
  expect(grant?.waitsMs).toEqual([])
  expect(grant?.retryMs).toBeGreaterThan(50_000)
})
