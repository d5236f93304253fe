/**
 * The one gate every request of the process goes through.
 *
 * A request is admitted when its lanes are due (the process's own rate, and the share of its run), when fewer
 * than `concurrency` are on their way, and when the service has not asked for a pause. Writes go before reads.
 * There is no burst: a lane is due one interval after the request that was last sent through it.
 */

/** A rate that is read anew for every request: change the number, and it holds within a second. */
export interface Share {
  requestsPerSecond: number
}

export interface Admission {
  /** How long the request stood in the queue. */
  waitedMs: number
  /** Must be called once the reply is there or lost. */
  release: () => void
}

interface Waiting {
  lanes: readonly Lane[]
  since: number
  admit(admission: Admission): void
}

/**
 * Timers come late, by a millisecond or by a garbage collection. What was lost so is made up for by the next
 * requests, at least half an interval apart, but never more than this.
 */
const mostCatchUpMs = 100
/** In so long no more than r requests leave, so that a second of the receiver holds r + 1 at most, 5 ms of jitter in. */
const windowMs = 1005
/** Replies to Retry-After that name a longer time are taken for a mistake. */
const longestPauseMs = 3_600_000
/** A queue looks again at least this often, since shares may change while it waits. */
const lookAgainMs = 1000
/** The share of the rate that is aimed for, so that without delays the window above is never full. */
const aim = 0.99

/** The spacing of one rate. */
export class Lane {
  readonly #share: Readonly<Share>
  /** When the last request should have left, and when those of the last window did. */
  #planned = Number.NEGATIVE_INFINITY
  #sent: number[] = []

  constructor(share: Readonly<Share>) {
    this.#share = share
  }

  dueAt(factor = 1): number {
    const interval = this.#interval(factor)
    const last = this.#sent.at(-1) ?? Number.NEGATIVE_INFINITY
    const full = this.#sent.at(-Math.ceil(this.#share.requestsPerSecond)) ?? Number.NEGATIVE_INFINITY
    return Math.max(this.#planned + interval, last + interval / 2, full + windowMs)
  }

  /** `since` is when the request began to wait: who came after it was due has not been delayed by a timer. */
  sent({ now, since, factor }: { now: number; since: number; factor: number }): void {
    if (this.#share.requestsPerSecond === Number.POSITIVE_INFINITY) return
    const planned = this.#planned + this.#interval(factor)
    this.#planned = since <= planned ? Math.max(planned, now - mostCatchUpMs) : now
    this.#sent.push(now)
    while ((this.#sent[0] ?? now) <= now - windowMs) this.#sent.shift()
  }

  #interval(factor: number): number {
    return 1000 / (this.#share.requestsPerSecond * aim * factor)
  }
}

export class RateLimiter {
  readonly #own: Lane
  readonly #concurrency: number
  readonly #writes: Waiting[] = []
  readonly #reads: Waiting[] = []
  #inFlight = 0
  #pausedUntil = Number.NEGATIVE_INFINITY
  #slowed = { at: Number.NEGATIVE_INFINITY, to: 1 }
  #timer: NodeJS.Timeout | undefined

  constructor({ share, concurrency }: { share: Readonly<Share>; concurrency: number }) {
    this.#own = new Lane(share)
    this.#concurrency = concurrency
  }

  /** Waits for its turn. Rejects with the signal's own reason when that is aborted first. */
  admit(options: { write: boolean; lanes: readonly Lane[]; signal?: AbortSignal | undefined }) {
    const { signal } = options
    return new Promise<Admission>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const queue = options.write ? this.#writes : this.#reads
      const leave = () => {
        queue.splice(queue.indexOf(waiting), 1)
        reject(signal?.reason)
      }
      const waiting: Waiting = {
        lanes: options.lanes,
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

  /** The service asked for a pause (Retry-After): nothing leaves until it is over. */
  pause(ms: number): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, performance.now() + Math.min(ms, longestPauseMs))
  }

  /**
   * The service said 429 to a request that left at `sentAt`: the rate is halved, down to 1/32, once for all
   * that were on their way, and grows back by 5 % of the full rate a second.
   */
  slowDown(sentAt: number): void {
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
      // First what holds for all, so that a long queue costs nothing while nobody in it can leave.
      const openAt = Math.max(this.#pausedUntil, this.#own.dueAt(factor))
      if (openAt > now) return this.#lookAgainIn(openAt - now)
      const next = takeDue(this.#writes, now) ?? takeDue(this.#reads, now)
      if (next === undefined) return this.#lookAgainIn(earliest([...this.#writes, ...this.#reads]) - now)
      this.#send(next, now, factor)
    }
  }

  #send(waiting: Waiting, now: number, factor: number): void {
    this.#own.sent({ now, since: waiting.since, factor })
    for (const lane of waiting.lanes) lane.sent({ now, since: waiting.since, factor: 1 })
    this.#inFlight += 1
    const release = () => {
      this.#inFlight -= 1
      this.#dispatch()
    }
    waiting.admit({ waitedMs: now - waiting.since, release })
  }

  #lookAgainIn(ms: number): void {
    this.#timer = setTimeout(() => this.#dispatch(), Math.min(Math.max(ms, 0), lookAgainMs))
  }
}

function takeDue(queue: Waiting[], now: number): Waiting | undefined {
  const index = queue.findIndex(({ lanes }) => dueAt(lanes) <= now)
  return index === -1 ? undefined : queue.splice(index, 1)[0]
}

function earliest(waiting: readonly Waiting[]): number {
  return waiting.reduce((least, { lanes }) => Math.min(least, dueAt(lanes)), Number.POSITIVE_INFINITY)
}

function dueAt(lanes: readonly Lane[]): number {
  return lanes.reduce((latest, lane) => Math.max(latest, lane.dueAt()), Number.NEGATIVE_INFINITY)
}
