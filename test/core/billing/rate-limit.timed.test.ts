import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest'
import type { Share } from '../../../core/billing/fleet-rate.ts'
import { Spacing, RateLimiter } from '../../../core/billing/rate-limit.ts'

/** Lets a request through and notes when, as soon as its turn has come. */
function admitter(limiter: RateLimiter) {
  const admitted: { name: string; at: number }[] = []
  const ask = async (
    name: string,
    options: { write?: boolean; spacings?: Spacing[]; signal?: AbortSignal } = {},
  ) => {
    const { write = false, spacings = [], signal } = options
    const { release } = await limiter.admit({ write, spacings, signal })
    admitted.push({ name, at: Math.round(performance.now()) })
    return release
  }
  return { admitted, ask, names: () => admitted.map(({ name }) => name).join(' ') }
}

it('makes up for no more than a tenth of a second that a timer was late', () => {
  const spacing = new Spacing({ requestsPerSecond: 20 })
  const leave = (now: number) => spacing.sent({ now, since: -Infinity, factor: 1 })
  leave(0)
  leave(2_000)
  for (let request = 0; request < 10; request++) leave(spacing.dueAt())
  expect(spacing.dueAt()).toBeGreaterThanOrEqual(2_000 + 11 * 50 - 100)
})

describe('the rate limit, on a faked clock', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.useRealTimers()
  })

  it('sends the first request at once and the others one interval apart', async () => {
    const start = performance.now()
    const { admitted, ask } = admitter(new RateLimiter({ share: { requestsPerSecond: 10 }, concurrency: 9 }))
    for (const name of ['a', 'b', 'c', 'd']) void ask(name)
    await vi.advanceTimersByTimeAsync(1000)
    // 101 ms and not 100: 1 % of the rate is left free, see rate-limit.ts.
    expect(admitted.map(({ at }) => at - Math.round(start))).toEqual(
      [0, 102, 202, 304].map((at) => expect.closeTo(at, -1)),
    )
  })

  it('makes no burst of the time in which nothing was asked', async () => {
    const { admitted, ask } = admitter(new RateLimiter({ share: { requestsPerSecond: 10 }, concurrency: 9 }))
    await ask('a')
    await vi.advanceTimersByTimeAsync(60_000)
    for (const name of ['b', 'c', 'd']) void ask(name)
    await vi.advanceTimersByTimeAsync(500)
    const gaps = admitted.slice(2).map(({ at }, index) => at - (admitted[index + 1]?.at ?? 0))
    expect(gaps).toHaveLength(2)
    for (const gap of gaps) expect(gap).toBeGreaterThanOrEqual(100)
  })

  it('lets writes go before reads that were there earlier', async () => {
    const { ask, names } = admitter(new RateLimiter({ share: { requestsPerSecond: 10 }, concurrency: 9 }))
    for (const name of ['r1', 'r2', 'r3']) void ask(name)
    void ask('w1', { write: true })
    void ask('w2', { write: true })
    await vi.advanceTimersByTimeAsync(1000)
    expect(names()).toBe('r1 w1 w2 r2 r3')
  })

  it('has no more on their way than the concurrency says', async () => {
    const limiter = new RateLimiter({
      share: { requestsPerSecond: Number.POSITIVE_INFINITY },
      concurrency: 2,
    })
    const { admitted, ask } = admitter(limiter)
    const releases = ['a', 'b', 'c'].map((name) => ask(name))
    await vi.advanceTimersByTimeAsync(5000)
    expect(admitted).toHaveLength(2)
    ;(await releases[0])?.()
    await vi.advanceTimersByTimeAsync(0)
    expect(admitted).toHaveLength(3)
  })

  it('holds a share under its own rate, and lets others use what it leaves', async () => {
    const limiter = new RateLimiter({ share: { requestsPerSecond: 100 }, concurrency: 99 })
    const { admitted, ask } = admitter(limiter)
    const slow = [new Spacing({ requestsPerSecond: 2 })]
    for (let index = 0; index < 9; index++) void ask('slow', { spacings: slow, write: true })
    for (let index = 0; index < 50; index++) void ask('free')
    await vi.advanceTimersByTimeAsync(1000)
    expect(admitted.filter(({ name }) => name === 'slow')).toHaveLength(2)
    expect(admitted.filter(({ name }) => name === 'free')).toHaveLength(50)
  })

  it('follows a share that is changed while requests wait, within a second', async () => {
    const limiter = new RateLimiter({ share: { requestsPerSecond: 100 }, concurrency: 99 })
    const { admitted, ask } = admitter(limiter)
    const share: Share = { requestsPerSecond: 0.01 }
    const spacings = [new Spacing(share)]
    for (let index = 0; index < 5; index++) void ask('a', { spacings })
    await vi.advanceTimersByTimeAsync(10_000)
    expect(admitted).toHaveLength(1)
    share.requestsPerSecond = 50
    await vi.advanceTimersByTimeAsync(1100)
    expect(admitted).toHaveLength(5)
  })

  it('lets nothing leave while the service has asked for a pause', async () => {
    const limiter = new RateLimiter({ share: { requestsPerSecond: 100 }, concurrency: 99 })
    const { admitted, ask } = admitter(limiter)
    limiter.pause(7000)
    limiter.pause(3000)
    void ask('w', { write: true })
    await vi.advanceTimersByTimeAsync(6990)
    expect(admitted).toHaveLength(0)
    await vi.advanceTimersByTimeAsync(20)
    expect(admitted).toHaveLength(1)
  })

  it('halves its rate once for all requests that met the same 429, and grows back', async () => {
    const limiter = new RateLimiter({ share: { requestsPerSecond: 100 }, concurrency: 999 })
    const { admitted, ask } = admitter(limiter)
    const sentAt = performance.now() - 50
    limiter.slowDown({ sentAt })
    limiter.slowDown({ sentAt })
    for (let index = 0; index < 999; index++) void ask('a')
    const during = async (ms: number) => {
      const before = admitted.length
      await vi.advanceTimersByTimeAsync(ms)
      return admitted.length - before
    }
    const first = await during(1000)
    expect(first).toBeGreaterThan(45)
    expect(first).toBeLessThan(58)
    await during(9000)
    expect(await during(1000)).toBeGreaterThan(93)
  })

  it('a caller that stops waiting gets the signal’s own reason, and the others continue', async () => {
    const limiter = new RateLimiter({ share: { requestsPerSecond: 1 }, concurrency: 9 })
    const { ask, names } = admitter(limiter)
    const stop = new AbortController()
    void ask('a')
    const stopped = ask('b', { signal: stop.signal }).catch((error: unknown) => error)
    void ask('c')
    const reason = new Error('the run is cancelled')
    stop.abort(reason)
    expect(await stopped).toBe(reason)
    await vi.advanceTimersByTimeAsync(1100)
    expect(names()).toBe('a c')
    expect(await ask('d', { signal: stop.signal }).catch((error: unknown) => error)).toBe(reason)
  })
})

/** The most arrivals in any one second: the window is slid from arrival to arrival. */
function mostInASecond(arrivals: readonly number[]): number {
  let from = 0
  let most = 0
  for (const [index, at] of arrivals.entries()) {
    while (at - (arrivals[from] ?? at) >= 1000) from += 1
    most = Math.max(most, index - from + 1)
  }
  return most
}

describe('the rate limit, where timers come late and replies are jolted', () => {
  beforeEach(() => {
    vi.useFakeTimers()
  })
  afterEach(() => {
    vi.unstubAllGlobals()
    vi.useRealTimers()
  })

  it.each([2.5, 10, 50, 200])(
    'at %d a second: at most r + 1 in any second, and 0.98 of it used',
    async (rate) => {
      let seed = 20_261_121
      const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
      const punctual = setTimeout
      // A millisecond or two as always, and now and then what a garbage collection or another process takes.
      const lateMs = () => (random() < 0.01 ? 50 : 2) * random()
      vi.stubGlobal('setTimeout', (call: () => void, ms: number) => punctual(call, ms + lateMs()))
      const limiter = new RateLimiter({ share: { requestsPerSecond: rate }, concurrency: 1e6 })
      const sent: number[] = []
      const seconds = 20
      for (let index = 0; index <= rate * seconds * 2; index++)
        void limiter.admit({ write: false, spacings: [] }).then(() => sent.push(performance.now()))
      await vi.advanceTimersByTimeAsync(seconds * 1000)
      const arrivals = sent.map((at) => at + 4 * random()).toSorted((a, b) => a - b)
      expect(mostInASecond(arrivals)).toBeLessThanOrEqual(Math.floor(rate + 1))
      expect(sent.length / seconds / rate).toBeGreaterThanOrEqual(0.98)
      // What was lost is never made up for in a burst.
      const gaps = sent.slice(1).map((at, index) => at - (sent[index] ?? at))
      expect(Math.min(...gaps)).toBeGreaterThanOrEqual(500 / rate)
    },
  )
})
