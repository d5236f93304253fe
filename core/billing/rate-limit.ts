/**
 * The rate limiter that every request of the process passes.
 *
 * A request is admitted when the spacing of each of its rates allows it (the process's own rate and its run's share),
 * fewer than `concurrency` requests are in flight, and the service has not requested a pause. Writes go before reads.
 * There are no bursts: the next request is due one interval after the last.
 */

import { setTimeout as wait } from 'node:timers/promises'
import type { FleetRate, Quota, Share } from './fleet-rate.ts'
import type { Pause } from './trouble-watch.ts'

export interface Admission {
  /** Milliseconds in the queue. */
  waitedMs: number
  /** Must be called when the reply has come or is lost. */
  release: () => void
  departure: Departure
}

/**
 * Lets an admitted request leave. It may have waited for its connection or its claim, or its process was frozen, and the
 * rate holds for the requests that leave.
 */
export interface Departure {
  /** Resolves when it may leave, so that claiming it is not in vain. */
  possible(signal: AbortSignal): Promise<void>
  /** Resolves in the turn of the event loop in which it leaves. */
  leave(signal: AbortSignal): Promise<void>
}

interface AdmitOptions {
  write: boolean
  spacings: readonly Spacing[]
  signal?: AbortSignal | undefined
}

const wholeOf = ({ requestsPerSecond }: Share): Quota => ({
  requestsPerSecond,
  most: Math.ceil(requestsPerSecond),
})

interface Waiting {
  spacings: readonly Spacing[]
  since: number
  admit(admission: Admission): void
  fail(error: unknown): void
}

/**
 * Timers fire late, by a millisecond or by a garbage collection. The next requests make up for the delay, at least half
 * an interval apart, but for no more than this.
 */
const maxCatchUpMs = 100
/** At most r requests leave within this time, so the service sees at most r + 1 in a second, with 5 ms of jitter. */
const windowMs = 1005
/** A longer Retry-After is considered a mistake. */
const maxPauseMs = 3_600_000

/** A pause that begins now, for as long as the service asks. */
function toPause(ms: number): Pause {
  const since = Date.now()
  return { since, asked: since + ms, until: since + Math.min(ms, maxPauseMs) }
}
/** The queue is checked at least this often, since shares may change while it waits. */
const recheckMs = 1000
/** The target share of the rate: without delays the window above is never full. */
const aim = 0.99

/** The spacing of one rate. */
export class Spacing {
  readonly #quota: () => Quota
  /** When the last request should have left, and when those of the last window were admitted, and left. */
  #planned = Number.NEGATIVE_INFINITY
  readonly #admitted: number[] = []
  readonly #left: number[] = []

  constructor(share: Readonly<Share>, fleet?: FleetRate) {
    this.#quota = () => (fleet === undefined ? wholeOf(share) : fleet.quotaOf(share))
  }

  dueAt(factor = 1): number {
    const quota = this.#quota()
    if (quota.most === 0) return Number.POSITIVE_INFINITY
    const interval = intervalOf(quota, factor)
    const last = this.#admitted.at(-1) ?? Number.NEGATIVE_INFINITY
    return Math.max(this.#planned + interval, last + interval / 2, roomAt(this.#admitted, quota))
  }

  /** `since`: when the request began to wait. If it came after it was due, no timer has delayed it. */
  sent({ now, since, factor }: { now: number; since: number; factor: number }): void {
    const quota = this.#quota()
    if (quota.requestsPerSecond === Number.POSITIVE_INFINITY) return
    const planned = this.#planned + intervalOf(quota, factor)
    this.#planned = since <= planned ? Math.max(planned, now - maxCatchUpMs) : now
    note(this.#admitted, now)
  }

  /** When an admitted request may leave. */
  leavesAt(): number {
    const quota = this.#quota()
    return quota.most === 0 ? Number.POSITIVE_INFINITY : roomAt(this.#left, quota)
  }

  left(now: number): void {
    note(this.#left, now)
  }
}

const intervalOf = ({ requestsPerSecond }: Quota, factor: number) => 1000 / (requestsPerSecond * aim * factor)

/** From when on fewer than the most are in the window. */
const roomAt = (times: readonly number[], { most }: Quota) =>
  (times.at(-most) ?? Number.NEGATIVE_INFINITY) + windowMs

function note(times: number[], now: number): void {
  times.push(now)
  while ((times[0] ?? now) <= now - windowMs) times.shift()
}

/**
 * Admits requests at the rate of this process, or at its share of the fleet's, and lets them leave.
 */
export class RateLimiter {
  readonly #own: Spacing
  readonly #concurrency: number
  readonly #fleet: FleetRate | undefined
  readonly #writes: Waiting[] = []
  readonly #reads: Waiting[] = []
  #inFlight = 0
  #pausedUntil = Number.NEGATIVE_INFINITY
  #pause: Pause | undefined
  #slowed = { at: Number.NEGATIVE_INFINITY, to: 1 }
  #timer: NodeJS.Timeout | undefined

  constructor(options: { share: Readonly<Share>; concurrency: number; fleet?: FleetRate | undefined }) {
    const { share, concurrency, fleet } = options
    this.#own = new Spacing(share, fleet)
    this.#concurrency = concurrency
    this.#fleet = fleet
    fleet?.listen({
      changed: (pausedMs) => {
        this.#holdBack(pausedMs)
        this.#dispatch()
      },
      failed: (error) => {
        for (const waiting of [...this.#writes.splice(0), ...this.#reads.splice(0)]) waiting.fail(error)
      },
    })
  }

  /** The spacing of a run's own rate, which it has over all workers. */
  spacingOf(share: Readonly<Share>): Spacing {
    return new Spacing(share, this.#fleet)
  }

  /** Waits for admission. Rejects with the signal's reason if that is aborted first. */
  async admit({ write, spacings, signal }: AdmitOptions): Promise<Admission> {
    signal?.throwIfAborted()
    const queue = write ? this.#writes : this.#reads
    const { promise, resolve, reject } = Promise.withResolvers<Admission>()
    const waiting: Waiting = { spacings, since: performance.now(), admit: resolve, fail: reject }
    const leave = () => {
      const index = queue.indexOf(waiting)
      if (index === -1) return
      queue.splice(index, 1)
      reject(signal?.reason)
    }
    signal?.addEventListener('abort', leave, { once: true })
    queue.push(waiting)
    this.#dispatch()
    return await promise.finally(() => signal?.removeEventListener('abort', leave))
  }

  /** Pauses all requests, of all workers, as the service requested (Retry-After). */
  pause(ms: number): void {
    this.#holdBack(ms)
    if (ms > 0) void this.#fleet?.pause(Math.min(ms, maxPauseMs))
  }

  #holdBack(ms: number): void {
    const until = performance.now() + Math.min(ms, maxPauseMs)
    if (ms <= 0 || until <= this.#pausedUntil) return
    this.#pausedUntil = until
    this.#pause = toPause(ms)
  }

  /** The pause that holds everything back now. */
  get paused(): Pause | undefined {
    return performance.now() < this.#pausedUntil ? this.#pause : undefined
  }

  /**
   * The rate is halved, down to 1/32, once for all requests that were in flight, and grows back by 5 % of the full rate a
   * second.
   */
  slowDown({ sentAt }: { sentAt: number }): void {
    if (sentAt < this.#slowed.at) return
    const now = performance.now()
    this.#slowed = { at: now, to: Math.max(this.#factor(now) / 2, 1 / 32) }
  }

  #factor(now: number): number {
    if (this.#slowed.to === 1) return 1
    return Math.min(1, this.#slowed.to + ((now - this.#slowed.at) / 1000) * 0.05)
  }

  #dispatch(): void {
    clearTimeout(this.#timer)
    const most = Math.max(1, Math.floor(this.#concurrency / (this.#fleet?.workers ?? 1)))
    while (this.#inFlight < most && this.#writes.length + this.#reads.length > 0) {
      const now = performance.now()
      const factor = this.#factor(now)
      // Check the common conditions first, so that a long queue costs nothing while no request can leave.
      const openAt = Math.max(this.#pausedUntil, this.#own.dueAt(factor))
      if (openAt > now) return this.#lookAgainIn(openAt - now)
      const next = takeDue(this.#writes, now) ?? takeDue(this.#reads, now)
      if (next === undefined) return this.#lookAgainIn(earliest([...this.#writes, ...this.#reads]) - now)
      this.#send(next, now, factor)
    }
  }

  #send(waiting: Waiting, now: number, factor: number): void {
    this.#own.sent({ now, since: waiting.since, factor })
    for (const spacing of waiting.spacings) spacing.sent({ now, since: waiting.since, factor: 1 })
    this.#inFlight += 1
    const release = () => {
      this.#inFlight -= 1
      this.#dispatch()
    }
    const departure = this.#departureOf([this.#own, ...waiting.spacings])
    waiting.admit({ waitedMs: now - waiting.since, release, departure })
  }

  #departureOf(spacings: readonly Spacing[]): Departure {
    const msUntil = () =>
      Math.max(this.#pausedUntil, ...spacings.map((spacing) => spacing.leavesAt())) - performance.now()
    const possible = async (signal: AbortSignal) => {
      for (let ms = msUntil(); ms > 0; ms = msUntil()) await waitFor(ms, signal)
    }
    const leave = async (signal: AbortSignal) => {
      await possible(signal)
      // Another one may have left since.
      while (msUntil() > 0) await possible(signal)
      const now = performance.now()
      for (const spacing of spacings) spacing.left(now)
    }
    return { possible, leave }
  }

  #lookAgainIn(ms: number): void {
    this.#timer = setTimeout(() => this.#dispatch(), Math.min(Math.max(ms, 0), recheckMs))
  }
}

/** Timers may fire a fraction of a millisecond early. Without a share, there may be one at any moment. */
async function waitFor(ms: number, signal: AbortSignal): Promise<void> {
  const most = ms === Number.POSITIVE_INFINITY ? 25 : Math.min(Math.ceil(ms), recheckMs)
  await wait(most, undefined, { signal }).catch(() => signal.throwIfAborted())
}

function takeDue(queue: Waiting[], now: number): Waiting | undefined {
  const index = queue.findIndex(({ spacings }) => dueAt(spacings) <= now)
  return index === -1 ? undefined : queue.splice(index, 1)[0]
}

function earliest(waiting: readonly Waiting[]): number {
  return waiting.reduce((least, { spacings }) => Math.min(least, dueAt(spacings)), Number.POSITIVE_INFINITY)
}

function dueAt(spacings: readonly Spacing[]): number {
  return spacings.reduce((latest, spacing) => Math.max(latest, spacing.dueAt()), Number.NEGATIVE_INFINITY)
}
