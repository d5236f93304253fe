/**
 * The rate limiter that every request of the process passes.
 *
 * A request is admitted when the spacing of each of its rates allows it (the process's own rate and its run's share),
 * fewer than `concurrency` requests are in flight, and the service has not requested a pause. Writes go before reads.
 * There are no bursts: the next request is due one interval after the last.
 */

import type { Pause } from './trouble-watch.ts'

/** A rate that is read for every request: a changed number applies within a second. */
export interface Share {
  requestsPerSecond: number
  /** The run whose share it is. */
  run?: string
}

export interface Admission {
  /** Milliseconds in the queue. */
  waitedMs: number
  /** Must be called when the reply has come or is lost. */
  release: () => void
  /** When the request may leave; undefined for now. */
  departure?: Departure
}

/** The time at which a request may leave, where several workers share a rate. */
export interface Departure {
  /** The number of the permit that it leaves with. */
  readonly permit: number
  /** Resolves when it has a permit that is still valid; the permit may be due a moment later. */
  secure(signal: AbortSignal): Promise<void>
  /** Resolves in the turn of the event loop in which it may leave. */
  ready(signal: AbortSignal): Promise<void>
}

export interface AdmitOptions {
  write: boolean
  spacings: readonly Spacing[]
  signal?: AbortSignal | undefined
}

/** Admits requests at a rate: that of this process, or of several together. */
export interface Gate {
  /** Waits for admission. Rejects with the signal's reason if that is aborted first. */
  admit(options: AdmitOptions): Promise<Admission>
  /** Pauses all requests, as the service requested (Retry-After). */
  pause(ms: number): void
  /** The pause that holds everything back now. */
  readonly paused: Pause | undefined
  /** Slows down after a 429 for a request that left at `sentAt`, with that permit. */
  slowDown(request: { sentAt: number; permit: number | undefined }): void
}

interface Waiting {
  spacings: readonly Spacing[]
  since: number
  admit(admission: Admission): void
}

/**
 * Timers fire late, by a millisecond or by a garbage collection. The next requests make up for the delay, at least half
 * an interval apart, but for no more than this.
 */
const maxCatchUpMs = 100
/** At most r requests leave within this time, so the service sees at most r + 1 in a second, with 5 ms of jitter. */
const windowMs = 1005
/** A longer Retry-After is considered a mistake. */
export const maxPauseMs = 3_600_000

/** A pause that begins now, for as long as the service asks. */
export function toPause(ms: number): Pause {
  const since = Date.now()
  return { since, asked: since + ms, until: since + Math.min(ms, maxPauseMs) }
}
/** The queue is checked at least this often, since shares may change while it waits. */
const recheckMs = 1000
/** The target share of the rate: without delays the window above is never full. */
const aim = 0.99

/** The spacing of one rate. */
export class Spacing {
  readonly share: Readonly<Share>
  /** When the last request should have left, and when those of the last window left. */
  #planned = Number.NEGATIVE_INFINITY
  #sent: number[] = []

  constructor(share: Readonly<Share>) {
    this.share = share
  }

  dueAt(factor = 1): number {
    const interval = this.#interval(factor)
    const last = this.#sent.at(-1) ?? Number.NEGATIVE_INFINITY
    const full = this.#sent.at(-Math.ceil(this.share.requestsPerSecond)) ?? Number.NEGATIVE_INFINITY
    return Math.max(this.#planned + interval, last + interval / 2, full + windowMs)
  }

  /** `since`: when the request began to wait. If it came after it was due, no timer has delayed it. */
  sent({ now, since, factor }: { now: number; since: number; factor: number }): void {
    if (this.share.requestsPerSecond === Number.POSITIVE_INFINITY) return
    const planned = this.#planned + this.#interval(factor)
    this.#planned = since <= planned ? Math.max(planned, now - maxCatchUpMs) : now
    this.#sent.push(now)
    while ((this.#sent[0] ?? now) <= now - windowMs) this.#sent.shift()
  }

  #interval(factor: number): number {
    return 1000 / (this.share.requestsPerSecond * aim * factor)
  }
}

export class RateLimiter implements Gate {
  readonly #own: Spacing
  readonly #concurrency: number
  readonly #writes: Waiting[] = []
  readonly #reads: Waiting[] = []
  #inFlight = 0
  #pausedUntil = Number.NEGATIVE_INFINITY
  #pause: Pause | undefined
  #slowed = { at: Number.NEGATIVE_INFINITY, to: 1 }
  #timer: NodeJS.Timeout | undefined

  constructor({ share, concurrency }: { share: Readonly<Share>; concurrency: number }) {
    this.#own = new Spacing(share)
    this.#concurrency = concurrency
  }

  admit(options: AdmitOptions) {
    const { signal } = options
    return new Promise<Admission>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const queue = options.write ? this.#writes : this.#reads
      const leave = () => {
        queue.splice(queue.indexOf(waiting), 1)
        reject(signal?.reason)
      }
      const waiting: Waiting = {
        spacings: options.spacings,
        since: performance.now(),
        admit: (admission) => {
          signal?.removeEventListener('abort', leave)
          resolve(admission)
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      queue.push(waiting)
      this.#dispatch()
    })
  }

  pause(ms: number): void {
    const until = performance.now() + Math.min(ms, maxPauseMs)
    if (ms <= 0 || until <= this.#pausedUntil) return
    this.#pausedUntil = until
    this.#pause = toPause(ms)
  }

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
    while (this.#inFlight < this.#concurrency && this.#writes.length + this.#reads.length > 0) {
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
    waiting.admit({ waitedMs: now - waiting.since, release })
  }

  #lookAgainIn(ms: number): void {
    this.#timer = setTimeout(() => this.#dispatch(), Math.min(Math.max(ms, 0), recheckMs))
  }
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
