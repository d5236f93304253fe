import { afterEach, expect, test, vi } from 'vitest'
import {
  type Asker,
  FleetRate,
  partOf,
  type RateStore,
  type Share,
} from '../../../core/billing/fleet-rate.ts'
import { RateLimiter } from '../../../core/billing/rate-limit.ts'
import { createRandom } from '../reading/drifting-list.ts'
import { failure, json, quickBilling, startTinyService } from './tiny-service.ts'

afterEach(() => {
  vi.useRealTimers()
  vi.restoreAllMocks()
})

/** Unlike that of node:timers/promises, on the faked clock too. */
const sleep = <T>(ms: number, value?: T) =>
  new Promise<T | undefined>((resolve) => setTimeout(() => resolve(value), ms))

/** The askers of all rates, as PostgreSQL keeps them. */
function createRates() {
  const rows = new Map<string, Map<string, Asker>>()
  const state = { error: undefined as Error | undefined, pausedUntil: 0 }
  const storeOf = (worker: string): RateStore => ({
    worker,
    async ask(rate, perSecond) {
      await sleep(1)
      if (state.error !== undefined) throw state.error
      const now = performance.now()
      const askers = rows.get(rate) ?? new Map<string, Asker>()
      rows.set(rate, askers.set(worker, { worker, perSecond, askedAt: now }))
      return { askers: [...askers.values()], now, pausedMs: Math.max(0, state.pausedUntil - now) }
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

/** Whether each of several workers uses the rate, and whether it reaches the store; both change at random. */
function createWorkers(perSecond: number, { storeOf }: ReturnType<typeof createRates>) {
  const share = { requestsPerSecond: perSecond }
  return Array.from({ length: 6 }, (_, index) => {
    const store = storeOf(`worker ${index}`)
    const worker = {
      isBusy: true,
      isCutOff: false,
      most: () => (worker.isBusy ? rate.quotaOf(share).most : 0),
    }
    const rate = new FleetRate({
      ...store,
      ask: async (...asked) => {
        if (worker.isCutOff) throw new Error('away')
        return await store.ask(...asked)
      },
    })
    return worker
  })
}

test.each([0.5, 1, 2.5, 10, 100])(
  'however workers join, freeze and leave, together they may send no more than %d requests in any second',
  async (perSecond) => {
    vi.useFakeTimers()
    const random = createRandom(7)
    const workers = createWorkers(perSecond, createRates())
    const total = Math.ceil(perSecond)
    const last: number[][] = workers.map(() => [])
    const served = new Set<number>()
    let most = 0
    for (let step = 0; step < 6_000; step += 1) {
      for (const [index, worker] of workers.entries()) {
        // Each rests for half a minute now and then; one is cut off half of the time.
        worker.isBusy = Math.floor(step / 300) % workers.length !== index
        if (random() < 0.01) worker.isCutOff = random() < (index === 0 ? 0.5 : 0.2)
        last[index] = [...last[index]!, worker.most()].slice(-10)
        if (last[index].at(-1)! > 0) served.add(index)
      }
      most = Math.max(
        most,
        last.reduce((sum, quotas) => sum + Math.max(...quotas), 0),
      )
      await vi.advanceTimersByTimeAsync(100)
    }
    expect(most).toBe(total)
    // With fewer requests than workers they take turns.
    expect(served.size).toBe(workers.length)
  },
)

test('a clock that was set back hides nobody who is alive', () => {
  const asker = (worker: string, askedAt: number) => ({ worker, perSecond: 10, askedAt })
  expect(partOf('b', [asker('a', 1_000_000), asker('b', 1_000)], 1_000).workers).toBe(1)
  expect(partOf('b', [asker('a', 1_400), asker('b', 1_000)], 1_500)).toMatchObject({
    workers: 2,
    requests: 5,
  })
})

test.each([
  ['was frozen', performance],
  ['was suspended with its machine', Date],
])('an admitted request of a worker that %s leaves only with a new share', async (_, clock) => {
  const { open, state } = createRates()
  const { departure } = await open('a').admit(read)
  state.error = new Error('away')
  const now = clock.now.bind(clock)
  vi.spyOn(clock, 'now').mockImplementation(() => now() + 2_100)
  const leaving = departure.leave(signal).then(() => 'left')
  expect(await Promise.race([leaving, sleep(400, 'waits')])).toBe('waits')
  state.error = undefined
  expect(await leaving).toBe('left')
})

// At once: they wait for seconds, and share nothing.
test.concurrent('a worker that is alone sends within a second, and at the whole rate', async () => {
  const { open } = createRates()
  const left: number[] = []
  const from = performance.now()
  const stop = keepSending(open('a', { requestsPerSecond: 50 }), left)
  await vi.waitFor(() => expect(left.length).toBeGreaterThan(40), { timeout: 5_000 })
  stop.abort()
  expect(left[0]! - from).toBeLessThan(1_000)
  expect(mostInASecond(left)).toBeLessThanOrEqual(51)
})

test.concurrent('workers that join share the rate: at most r + 1 requests leave in any second, and each gets its part', async () => {
  const { open } = createRates()
  const left: Record<string, number[]> = { a: [], b: [], c: [] }
  const stops = [keepSending(open('a', { requestsPerSecond: 20 }), left['a']!)]
  await vi.waitFor(() => expect(left['a']!.length).toBeGreaterThan(5), { timeout: 5_000 })
  for (const name of ['b', 'c']) stops.push(keepSending(open(name, { requestsPerSecond: 20 }), left[name]!))
  await vi.waitFor(() => expect(Math.min(left['b']!.length, left['c']!.length)).toBeGreaterThan(10), {
    timeout: 12_000,
  })
  for (const stop of stops) stop.abort()
  expect(mostInASecond(Object.values(left).flat())).toBeLessThanOrEqual(21)
}, 20_000)

test.concurrent('requests that were admitted together leave no faster than the share allows in a second', async () => {
  const { open } = createRates()
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

test.concurrent('a pause that one worker was asked for holds back all workers, and requests admitted before it', async () => {
  const { open } = createRates()
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

test.concurrent('a worker has its part of the requests in flight, and at least one', async () => {
  const { open, rows } = createRates()
  const others = ['b', 'c', 'd'].map((worker) => [
    worker,
    { worker, perSecond: 1_000, askedAt: performance.now() },
  ])
  rows.set('all', new Map(others as [string, Asker][]))
  const limiter = open('a', { concurrency: 8 })
  const admitted: (() => void)[] = []
  for (let index = 0; index < 4; index += 1)
    void limiter.admit(read).then(({ release }) => admitted.push(release))
  await vi.waitFor(() => expect(admitted).toHaveLength(2), { timeout: 5_000 })
  await sleep(100)
  expect(admitted).toHaveLength(2)
  admitted[0]!()
  await vi.waitFor(() => expect(admitted).toHaveLength(3), { timeout: 5_000 })
}, 10_000)

test.concurrent('a run has its own rate over all workers, shared only by those that work on it', async () => {
  const { open } = createRates()
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

test.concurrent('no request is admitted while the store is away, and those that wait are admitted when it is back', async () => {
  const { open, state } = createRates()
  state.error = new Error('away')
  const admitted = open('a').admit(read)
  expect(await Promise.race([admitted.then(() => 'admitted'), sleep(300, 'waits')])).toBe('waits')
  state.error = undefined
  expect(await admitted).toHaveProperty('departure')
})

test.concurrent('an error that is not an outage of the store fails the requests that wait, and the next one asks again', async () => {
  const { open, state } = createRates()
  const limiter = open('a')
  state.error = new Error('permission denied for table rates')
  expect(await failure(limiter.admit(read))).toBe(state.error)
  state.error = undefined
  expect(await limiter.admit(read)).toHaveProperty('departure')
})

test.concurrent('a claimed write that may not leave within two seconds of its claim is not sent', async () => {
  const { storeOf, state } = createRates()
  await using service = await startTinyService(json(201, { id: '1' }))
  const billing = quickBilling({
    baseUrl: service.baseUrl,
    rate: { requestsPerSecond: 100 },
    fleet: new FleetRate(storeOf('a')),
  })
  const beforeSend = async () => {
    state.pausedUntil = performance.now() + 5_000
    await sleep(1_100)
  }
  expect(await failure(billing.createAddon({}, { beforeSend }))).toMatchObject({
    name: 'SentTooLate',
    effect: 'none',
  })
  expect(service.seen).toHaveLength(0)
}, 10_000)
