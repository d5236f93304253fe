/**
 * The rate of several workers together. A request needs a permit: one request, at a time of its own. A permit that is
 * not used in time is void, so a worker that was frozen makes no burst. Writes go before reads, in this process and in all.
 */
import { setTimeout as wait } from 'node:timers/promises'
import { type Grant, GrantClock, type Permit, type Permits } from './permits.ts'
import { SparePermits } from './spare-permits.ts'
import {
  type Admission,
  type AdmitOptions,
  type Departure,
  type Gate,
  maxPauseMs,
  type Share,
  toPause,
} from './rate-limit.ts'
import type { Pause } from './trouble-watch.ts'
import { rankOf, runOf, type Waiting } from './waiting-request.ts'

/** The state is asked again at least this often, because rates may change. */
const longestRetryMs = 1_000
const awayRetryMs = 250

export class SharedRate implements Gate {
  readonly #permits: Permits
  readonly #share: Readonly<Share>
  readonly #concurrency: number
  readonly #clock = new GrantClock()
  #waiting: Waiting[] = []
  /** Permits that were granted and not used yet. */
  readonly #granted = new Set<Permit>()
  readonly #spares = new SparePermits()
  #inFlight = 0
  /** Unknown until the first grant. */
  #workers = Number.POSITIVE_INFINITY
  #pausedUntil = Number.NEGATIVE_INFINITY
  #pause: Pause | undefined
  #voidedAt = Number.NEGATIVE_INFINITY
  #retryAt = { write: 0, read: 0 }
  readonly #retryRunAt = new Map<string, number>()
  #asking = false
  #wake: (() => void) | undefined

  constructor({
    permits,
    share,
    concurrency,
  }: {
    permits: Permits
    share: Readonly<Share>
    concurrency: number
  }) {
    this.#permits = permits
    this.#share = share
    this.#concurrency = concurrency
  }

  async admit({ write, spacings, signal }: AdmitOptions): Promise<Admission> {
    const since = performance.now()
    let permit = await this.#next({ write, spacings, signal, isUrgent: false })
    const replace = async (stop: AbortSignal) => {
      permit = await this.#next({ write, spacings, signal: stop, isUrgent: true })
    }
    const departure: Departure = {
      get permit() {
        return permit.number
      },
      secure: async (stop) => {
        while (performance.now() > permit.voidAt) await replace(stop)
      },
      ready: async (stop) => {
        for (;;) {
          await until(permit.dueAt, stop)
          this.#granted.delete(permit)
          if (performance.now() <= permit.voidAt) return
          await replace(stop)
        }
      },
    }
    const release = () => {
      this.#granted.delete(permit)
      this.#inFlight -= 1
      this.#wakeUp()
    }
    return { waitedMs: performance.now() - since, release, departure }
  }

  pause(ms: number): void {
    if (ms <= 0) return
    const bounded = Math.min(ms, maxPauseMs)
    const until = performance.now() + bounded
    if (until > this.#pausedUntil) [this.#pausedUntil, this.#pause] = [until, toPause(ms)]
    this.#voidGranted()
    void this.#insist(() => this.#permits.pause(bounded))
  }

  get paused(): Pause | undefined {
    return this.#pause !== undefined && Date.now() < this.#pause.until ? this.#pause : undefined
  }

  slowDown({ permit }: { permit: number | undefined }): void {
    this.#voidGranted()
    if (permit !== undefined) void this.#insist(() => this.#permits.slowDown(permit))
  }

  /** What was granted before the service asked for less is not used. */
  #voidGranted() {
    for (const permit of this.#granted) permit.voidAt = Number.NEGATIVE_INFINITY
    this.#granted.clear()
    this.#spares.clear()
    this.#voidedAt = performance.now()
  }

  /** Until the store has it: it applies to all workers. */
  async #insist(write: () => Promise<void>): Promise<void> {
    for (let tries = 0; tries < maxTries; tries += 1) {
      try {
        return await write()
      } catch {
        await wait(awayRetryMs, undefined, { ref: false })
      }
    }
  }

  #next(options: AdmitOptions & { isUrgent: boolean }): Promise<Permit> {
    const { write, spacings, signal, isUrgent } = options
    return new Promise<Permit>((resolve, reject) => {
      if (signal?.aborted) return reject(signal.reason)
      const leave = () => {
        this.#waiting = this.#waiting.filter((one) => one !== waiting)
        reject(signal?.reason)
      }
      const waiting: Waiting = {
        write,
        run: runOf(spacings)?.name,
        spacings,
        isUrgent,
        since: performance.now(),
        grant: (permit) => {
          signal?.removeEventListener('abort', leave)
          resolve(permit)
        },
        fail: (error) => {
          signal?.removeEventListener('abort', leave)
          reject(error)
        },
      }
      signal?.addEventListener('abort', leave, { once: true })
      this.#waiting.push(waiting)
      this.#wakeUp()
    })
  }

  #wakeUp(): void {
    this.#useSpares()
    this.#wake?.()
    if (!this.#asking) void this.#ask()
  }

  async #ask(): Promise<void> {
    this.#asking = true
    try {
      for (let next = this.#choose(); next !== undefined; next = this.#choose()) {
        const ms = next.at - performance.now()
        if (ms > 0) await this.#sleep(Math.min(ms, longestRetryMs))
        else await this.#takeFor(next.group)
      }
    } finally {
      this.#asking = false
    }
  }

  get #free(): number {
    return Math.max(1, Math.floor(this.#concurrency / this.#workers)) - this.#inFlight
  }

  /** The requests that may have a permit, in their order. */
  #inOrder(): Waiting[] {
    return this.#waiting
      .filter(({ isUrgent }) => isUrgent || this.#free > 0)
      .toSorted((a, b) => rankOf(a) - rankOf(b) || a.since - b.since)
  }

  /** Not for runs with a rate of their own: only the store knows when it allows the next request. */
  #useSpares(): void {
    for (;;) {
      const next = this.#spares.isEmpty ? undefined : this.#inOrder().find(({ run }) => run === undefined)
      const permit = next && this.#spares.take()
      if (permit === undefined) return
      this.#give(permit, next)
    }
  }

  /**
   * The requests to ask for next, and when; undefined if none can go before something else happens. No requests: for
   * spare permits alone.
   */
  #choose(): { group: Waiting[]; at: number } | undefined {
    const free = this.#free
    const ordered = this.#inOrder()
    let soonest: { group: Waiting[]; at: number } | undefined
    for (const first of ordered) {
      const at = this.#dueAt(first)
      if (soonest !== undefined && at >= soonest.at) continue
      const alike = ordered.filter((one) => rankOf(one) === rankOf(first) && one.run === first.run)
      soonest = { group: first.isUrgent ? alike : alike.slice(0, free), at }
      if (at <= performance.now()) break
    }
    return soonest ?? (this.#spares.runLow ? { group: [], at: 0 } : undefined)
  }

  #dueAt({ write, run }: Waiting): number {
    const all = write ? this.#retryAt.write : Math.max(this.#retryAt.write, this.#retryAt.read)
    return Math.max(all, this.#pausedUntil, run === undefined ? 0 : (this.#retryRunAt.get(run) ?? 0))
  }

  async #takeFor(group: Waiting[]): Promise<void> {
    const { write, spacings } = group[0] ?? { write: false, spacings: [] }
    const { requestsPerSecond } = this.#share
    this.#spares.asked()
    const askedAt = performance.now()
    const isMore = this.#waiting.filter((one) => one.write === write).length > group.length
    const run = runOf(spacings)
    let grant: Grant
    try {
      const waitedMs = askedAt - Math.min(askedAt, ...group.map(({ since }) => since))
      const ask = { requestsPerSecond, run, wanted: group.length, write, leftWaiting: isMore, waitedMs }
      grant = await this.#permits.take(ask)
    } catch (error) {
      if (!this.#permits.isAway(error)) return this.#fail(group, error)
      // While the store of the rate is away, nothing leaves.
      const at = performance.now() + awayRetryMs
      this.#retryAt = { write: at, read: at }
      return
    }
    const answeredAt = performance.now()
    const permits = this.#clock.toPermits({ grant, requestsPerSecond, askedAt, answeredAt })
    if (this.#voidedAt >= askedAt) return
    this.#workers = Math.max(1, grant.workers)
    for (const one of group) {
      const permit = permits.shift()
      if (permit !== undefined) this.#give(permit, one)
    }
    this.#spares.add(permits)
    this.#useSpares()
    this.#notePause(grant)
    const retryAt = answeredAt + Math.min(grant.retryMs, longestRetryMs)
    if (grant.waitsMs.length >= group.length) return
    if (grant.heldByRun && run !== undefined) this.#retryRunAt.set(run.name, retryAt)
    else if (write) this.#retryAt.write = retryAt
    else this.#retryAt.read = retryAt
  }

  /** Another worker was asked for a pause: nothing else holds everything back for that long. */
  #notePause({ waitsMs, retryMs, heldByRun }: Grant): void {
    const usualMs = 5_000 + 2_000 / this.#share.requestsPerSecond
    if (waitsMs.length > 0 || heldByRun || retryMs < usualMs || this.paused !== undefined) return
    this.#pause = toPause(retryMs)
  }

  #give(permit: Permit, waiting: Waiting | undefined): void {
    // Aborted in the meantime. Another one of its kind takes the permit.
    const taker =
      waiting !== undefined && this.#waiting.includes(waiting)
        ? waiting
        : this.#waiting.find(({ write, run }) => write === waiting?.write && run === waiting.run)
    if (taker === undefined) return
    this.#waiting = this.#waiting.filter((one) => one !== taker)
    this.#granted.add(permit)
    if (!taker.isUrgent) this.#inFlight += 1
    taker.grant(permit)
  }

  /** An error that asking again would not end, such as a missing right: each request that waits fails with it. */
  #fail(group: readonly Waiting[], error: unknown): void {
    this.#waiting = this.#waiting.filter((one) => !group.includes(one))
    for (const one of group) one.fail(error)
  }

  async #sleep(ms: number): Promise<void> {
    const timer = new AbortController()
    this.#wake = () => timer.abort()
    await wait(ms, undefined, { signal: timer.signal }).catch(() => undefined)
    this.#wake = undefined
  }
}

const maxTries = 20

/** Timers may fire a fraction of a millisecond early. */
async function until(at: number, signal: AbortSignal): Promise<void> {
  for (let ms = at - performance.now(); ms > 0; ms = at - performance.now())
    await wait(Math.ceil(ms), undefined, { signal }).catch(() => signal.throwIfAborted())
}
