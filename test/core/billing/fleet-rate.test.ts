import { setTimeout as sleep } from 'node:timers/promises'
import { afterEach, expect, test, vi } from 'vitest'
import { FleetRate, type ShareStore, takeShare } from '../../../core/billing/fleet-rate.ts'
import { RateLimiter, type Share } from '../../../core/billing/rate-limit.ts'
import { createRandom } from '../reading/drifting-list.ts'
import { failure, json, quickBilling, startTinyService } from './tiny-service.ts'

afterEach(() => vi.restoreAllMocks())

/** The shares of all workers, as PostgreSQL keeps them. */
function createShares() {
  const rows = new Map<string, string>()
  const state = { error: undefined as Error | undefined, pausedUntil: 0, reads: 0 }
  const storeOf = (worker: string): ShareStore => ({
    worker,
    async read(rate) {
      await sleep(1)
      state.reads += 1
      if (state.error !== undefined) throw state.error
      const now = performance.now()
      return { shares: rows.get(rate) ?? '{}', now, pausedMs: Math.max(0, state.pausedUntil - now) }
    },
    async replace(rate, { from, to }) {
      await sleep(1)
      if ((rows.get(rate) ?? '{}') !== from) return false
      rows.set(rate, to)
      return true
    },
    async pause(_rate, ms) {
      state.pausedUntil = performance.now() + ms
    },
    isAway: (error) => error instanceof Error && error.message === 'away',
  })
  const open = (worker: string, { requestsPerSecond = 1_000, concurrency = 64 } = {}) =>
    new RateLimiter({ share: { requestsPerSecond }, concurrency, fleet: new FleetRate(storeOf(worker)) })
  return { rows, state, storeOf, open }
}

const { signal } = new AbortController()
const read = { write: false, spacings: [] }

/** Sends requests without end that are answered at once, and notes when each left. */
function keepSending(limiter: RateLimiter, left: number[], share?: Share): AbortController {
  const stop = new AbortController()
  const spacings = share === undefined ? [] : [limiter.spacingOf(share)]
  const sendOne = async () => {
    const { departure, release } = await limiter.admit({ ...read, spacings, signal: stop.signal })
    await departure.leave(stop.signal)
    left.push(performance.now())
    release()
  }
  const work = async () => {
    while (!stop.signal.aborted) await sendOne().catch(() => undefined)
  }
  void work()
  void work()
  return stop
}

function mostInASecond(times: readonly number[]): number {
  return Math.max(...times.map((from) => times.filter((at) => at >= from && at < from + 1_000).length))
}

test.each([0.5, 1, 2.5, 10, 100])(
  'whenever workers ask, join, freeze and leave, their shares of %d a second are never more than the rate in sum',
  (perSecond) => {
    const random = createRandom(7)
    const workers = Array.from({ length: 6 }, (_, index) => `worker ${index}`)
    let shares: Parameters<typeof takeShare>[0]['shares'] = {}
    const leases = new Map<string, { requests: number; until: number }>()
    const served = new Map<string, number>()
    let most = 0
    for (let now = 0; now < 600_000; now += 50)
      for (const [index, worker] of workers.entries()) {
        // Each rests for a minute now and then, and one asks rarely.
        const rests = Math.floor(now / 60_000) % workers.length === index
        if (rests || random() > (index === 0 ? 0.01 : 0.1)) continue
        const taken = takeShare({ shares, worker, perSecond, now })
        shares = taken.shares
        leases.set(worker, { requests: taken.requests, until: now + 2_000 })
        served.set(worker, (served.get(worker) ?? 0) + taken.requests)
        const held = [...leases.values()].filter(({ until }) => until > now)
        most = Math.max(
          most,
          held.reduce((sum, { requests }) => sum + requests, 0),
        )
        expect(taken.requests * taken.perRequest).toBeLessThanOrEqual(perSecond)
      }
    expect(most).toBe(Math.ceil(perSecond))
    // With fewer requests than workers they take turns.
    expect([...served.values()].every((requests) => requests > 0) && served.size).toBe(workers.length)
  },
)

test('a clock that was set back hands out no share twice, and is forgotten ten seconds later', () => {
  const perSecond = 10
  const { shares } = takeShare({ shares: {}, worker: 'a', perSecond, now: 1_000_000 })
  const set = takeShare({ shares, worker: 'b', perSecond, now: 1_000 })
  expect(set).toMatchObject({ requests: 0, due: 5 })
  expect(takeShare({ shares: set.shares, worker: 'b', perSecond, now: 11_001 })).toMatchObject({
    requests: 10,
  })
})

test('a worker that is alone sends at once and at the whole rate', async () => {
  const { open } = createShares()
  const left: number[] = []
  const from = performance.now()
  const stop = keepSending(open('a', { requestsPerSecond: 50 }), left)
  await vi.waitFor(() => expect(left.length).toBeGreaterThan(40), { timeout: 3_000 })
  stop.abort()
  expect(left[0]! - from).toBeLessThan(200)
  expect(mostInASecond(left)).toBeLessThanOrEqual(51)
})

test('workers that join share the rate: at most r + 1 requests leave in any second, and each gets its part', async () => {
  const { open } = createShares()
  const left: Record<string, number[]> = { a: [], b: [], c: [] }
  const stops = [keepSending(open('a', { requestsPerSecond: 20 }), left['a']!)]
  await vi.waitFor(() => expect(left['a']!.length).toBeGreaterThan(5))
  for (const name of ['b', 'c']) stops.push(keepSending(open(name, { requestsPerSecond: 20 }), left[name]!))
  await vi.waitFor(() => expect(Math.min(left['b']!.length, left['c']!.length)).toBeGreaterThan(10), {
    timeout: 10_000,
  })
  for (const stop of stops) stop.abort()
  expect(mostInASecond(Object.values(left).flat())).toBeLessThanOrEqual(21)
}, 15_000)

test.each([
  ['was frozen', performance],
  ['was suspended with its machine', Date],
])('an admitted request of a worker that %s leaves only with a new share', async (_, clock) => {
  const { open, state } = createShares()
  const { departure } = await open('a').admit(read)
  state.error = new Error('away')
  const now = clock.now.bind(clock)
  vi.spyOn(clock, 'now').mockImplementation(() => now() + 2_100)
  const leaving = departure.leave(signal).then(() => 'left')
  expect(await Promise.race([leaving, sleep(400, 'waits')])).toBe('waits')
  state.error = undefined
  expect(await leaving).toBe('left')
})

test(
  'a worker uses no more than its new share as soon as others may know of it, though its answer is late',
  { tags: ['long'], timeout: 10_000 },
  async () => {
    const { open, rows, storeOf } = createShares()
    const slow = { ms: 0 }
    const store = storeOf('a')
    const late: ShareStore = {
      ...store,
      replace: (rate, change) =>
        store.replace(rate, change).then((isDone) => sleep(slow.ms).then(() => isDone)),
    }
    const share = { requestsPerSecond: 100 }
    const left: number[] = []
    const stop = keepSending(new RateLimiter({ share, concurrency: 64, fleet: new FleetRate(late) }), left)
    await vi.waitFor(() => expect(left.length).toBeGreaterThan(50), { timeout: 3_000 })
    slow.ms = 1_900
    await open('b', share).admit(read)
    await vi.waitFor(() => {
      const { a } = JSON.parse(rows.get('all')!) as Record<string, { requests: number }>
      expect(a!.requests).toBe(50)
    })
    const from = performance.now()
    await sleep(1_700)
    stop.abort()
    // What left in the second before counts, too.
    expect(left.filter((at) => at > from + 600).length).toBeLessThanOrEqual(60)
  },
)

test('a worker uses what others gave up only when their last requests are a second old', async () => {
  const { open, rows } = createShares()
  const now = performance.now()
  rows.set('all', JSON.stringify({ b: { requests: 50, perSecond: 100, at: now } }))
  const admitted = open('a', { requestsPerSecond: 100 }).admit(read)
  await vi.waitFor(() => expect(JSON.parse(rows.get('all')!)).toHaveProperty('a.requests', 50))
  const from = performance.now()
  await admitted
  expect(performance.now() - from).toBeGreaterThan(900)
}, 10_000)

test('a worker gives up what is another one’s before the others may know, however long it is frozen then', async () => {
  const { rows, storeOf } = createShares()
  const store = storeOf('a')
  const replacing = Promise.withResolvers<void>()
  const never = new Promise<never>(() => {})
  let isFrozen = false
  const rate = new FleetRate({
    ...store,
    async replace(...change) {
      if (!isFrozen) return await store.replace(...change)
      replacing.resolve()
      return await never
    },
  })
  const share = { requestsPerSecond: 10 }
  await vi.waitFor(() => expect(rate.quotaOf('all', share).most).toBe(10))
  const shares = JSON.parse(rows.get('all') ?? '{}') as Parameters<typeof takeShare>[0]['shares']
  const joined = takeShare({ shares, worker: 'b', perSecond: 10, now: performance.now() })
  isFrozen = true
  rows.set('all', JSON.stringify(joined.shares))
  await replacing.promise
  expect(rate.quotaOf('all', share).most).toBe(5)
})

test('requests that were admitted together leave no faster than the share allows in a second', async () => {
  const { open } = createShares()
  const limiter = open('a', { requestsPerSecond: 5 })
  const admitted = []
  for (let index = 0; index < 6; index += 1) admitted.push(await limiter.admit(read))
  // As after a freeze: all are ready at the same moment.
  const left = await Promise.all(
    admitted.map(async ({ departure }) => {
      await departure.leave(signal)
      return performance.now()
    }),
  )
  expect(mostInASecond(left)).toBe(5)
})

test('a pause that one worker was asked for holds back all, and what was admitted before it', async () => {
  const { open } = createShares()
  const [one, other] = [open('a'), open('b')]
  const first = await one.admit(read)
  one.pause(1_500)
  const paused = await vi.waitFor(() => {
    void other.admit(read)
    expect(other.paused).toBeDefined()
    return other.paused
  })
  expect(paused!.until - Date.now()).toBeLessThanOrEqual(1_500)
  const from = performance.now()
  await first.departure.leave(signal)
  expect(performance.now() - from).toBeGreaterThan(200)
})

test('a worker has its part of the requests in flight, and at least one', async () => {
  const { open, rows } = createShares()
  const shares = Object.fromEntries(
    ['b', 'c', 'd'].map((name) => [name, { requests: 0, perSecond: 1_000, at: performance.now() }]),
  )
  rows.set('all', JSON.stringify(shares))
  const limiter = open('a', { concurrency: 8 })
  const admitted: (() => void)[] = []
  for (let index = 0; index < 4; index += 1)
    void limiter.admit(read).then(({ release }) => admitted.push(release))
  await vi.waitFor(() => expect(admitted).toHaveLength(2), { timeout: 5_000 })
  await sleep(100)
  expect(admitted).toHaveLength(2)
  admitted[0]!()
  await vi.waitFor(() => expect(admitted).toHaveLength(3))
}, 10_000)

test('a run has its own rate over all workers, shared only by those that work on it', async () => {
  const { open } = createShares()
  const share = { requestsPerSecond: 4, run: 'r' }
  const [a, b] = [open('a'), open('b')]
  const others: number[] = []
  const left: number[] = []
  const stops = [keepSending(b, others), keepSending(a, left, share)]
  await vi.waitFor(() => expect(left.length).toBeGreaterThan(6), { timeout: 6_000 })
  const seconds = (left.at(-1)! - left[0]!) / 1_000
  for (const stop of stops) stop.abort()
  expect(mostInASecond(left)).toBeLessThanOrEqual(5)
  expect((left.length - 1) / seconds).toBeGreaterThan(3)
}, 10_000)

test('while the store is away nothing is admitted, and what waits is admitted when it is back', async () => {
  const { open, state } = createShares()
  state.error = new Error('away')
  const admitted = open('a').admit(read)
  expect(await Promise.race([admitted.then(() => 'admitted'), sleep(300, 'waits')])).toBe('waits')
  state.error = undefined
  expect(await admitted).toHaveProperty('departure')
})

test('an error that is no outage of the store fails the requests that wait, and the next one asks again', async () => {
  const { open, state } = createShares()
  const limiter = open('a')
  state.error = new Error('permission denied for table rates')
  expect(await failure(limiter.admit(read))).toBe(state.error)
  state.error = undefined
  expect(await limiter.admit(read)).toHaveProperty('departure')
})

test('a claimed write that may not leave within two seconds of its claim is not sent', async () => {
  const { storeOf, state } = createShares()
  await using service = await startTinyService(json(201, { id: '1' }))
  const billing = quickBilling({
    baseUrl: service.baseUrl,
    rate: { requestsPerSecond: 100 },
    fleet: new FleetRate(storeOf('a')),
  })
  const beforeSend = () => {
    state.pausedUntil = performance.now() + 5_000
    return sleep(1_100)
  }
  expect(await failure(billing.createAddon({}, { beforeSend }))).toMatchObject({
    name: 'SentTooLate',
    effect: 'none',
  })
  expect(service.seen).toHaveLength(0)
}, 10_000)
