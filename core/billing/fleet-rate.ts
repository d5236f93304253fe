/**
 * The rate of several workers together. Each worker may send a whole number of requests in any second: its equal part
 * among the workers that asked within the last ten seconds. Nobody hands anything over. A worker that joins waits until
 * the others must have noticed, because a worker that has not asked for two seconds (it was frozen) sends
 * nothing, and joins again.
 */
import { setTimeout as wait } from 'node:timers/promises'

/** A rate that is read for every request: a changed number applies within a second. */
export interface Share {
  requestsPerSecond: number
  /** The run whose share it is. */
  run?: string
}

/** What may be sent now. `most`: requests in any second. */
export interface Quota {
  requestsPerSecond: number
  most: number
}

/** Where the workers meet. */
export interface RateStore {
  /** Identifies this worker. */
  readonly worker: string
  /** Records that this worker uses a rate, and returns everybody who has asked for it. */
  ask(rate: string, perSecond: number): Promise<{ askers: readonly Asker[]; now: number; pausedMs: number }>
  /** Nobody may send for this long. */
  pause(rate: string, ms: number): Promise<void>
  /** Whether an error says that the store is away, so that it is asked again. */
  isAway(error: unknown): boolean
}

export interface Asker {
  worker: string
  perSecond: number
  /** By the store's clock, in ms. */
  askedAt: number
}

const askAgainMs = 500
const retryMs = 250
/** Longer than a hiccup of the database takes. */
const validMs = 2_000
/** After this time every worker that may send knows of a new one, and what it sent before is a second old. */
const settleMs = validMs + 1_000
/** A worker that has not asked for this long has no share. */
const memberMs = 10_000
const maxTries = 20

interface Part {
  /** Requests in any second. */
  requests: number
  /** The rate that belongs to one of these requests. */
  perRequest: number
  workers: number
}

/** A worker's equal part of a rate. The slowest rate that a worker is set to applies to all. */
export function partOf(worker: string, askers: readonly Asker[], now: number): Part {
  // A time far in the future: the clock was set back since, and every worker that is alive asks again at once.
  const members = askers.filter(({ askedAt }) => Math.abs(now - askedAt) < memberMs)
  const names = members.map((member) => member.worker).toSorted()
  const perSecond = Math.min(...members.map((member) => member.perSecond))
  const total = Math.ceil(perSecond)
  // With more workers than requests they take turns, ten seconds each.
  const turn = total < names.length ? Math.floor(now / memberMs) : 0
  const place = (names.indexOf(worker) + turn) % names.length
  const requests = Math.floor(total / names.length) + (place < total % names.length ? 1 : 0)
  return { requests, perRequest: perSecond / total, workers: names.length }
}

/** What this worker knows of one rate. Times are by performance.now(). */
interface Known {
  share: Readonly<Share>
  usedAt: number
  /** The parts of the last `settleMs`, and the one before; the smallest of them applies. */
  parts: (Part & { at: number })[]
  until: number
  /** By the wall clock: the other one stands still while a machine is suspended. */
  wallUntil: number
}

/** `changed`: there is another quota, or a pause. `failed`: an error that asking again would not end. */
interface Listener {
  changed(pausedMs: number): void
  failed(error: unknown): void
}

const nothing: Quota = { requestsPerSecond: 0, most: 0 }

export class FleetRate {
  /** How many workers share the rate of all. */
  workers = 1
  readonly #store: RateStore
  readonly #known = new Map<string, Known>()
  #listener: Listener | undefined

  constructor(store: RateStore) {
    this.#store = store
  }

  listen(listener: Listener): void {
    this.#listener = listener
  }

  /** What this worker may send now, of the rate of all or of a run's. It asks as long as someone uses it. */
  quotaOf(share: Readonly<Share>): Quota {
    const { requestsPerSecond, run } = share
    if (requestsPerSecond === Number.POSITIVE_INFINITY) return { requestsPerSecond, most: requestsPerSecond }
    const rate = run === undefined ? 'all' : `run ${run}`
    const now = performance.now()
    const known = this.#known.get(rate)
    if (known === undefined) {
      const created = { share, usedAt: now, parts: [], until: 0, wallUntil: 0 }
      this.#known.set(rate, created)
      void this.#keepAsking(rate, created)
      return nothing
    }
    Object.assign(known, { share, usedAt: now })
    if (now >= known.until || Date.now() >= known.wallUntil) return nothing
    known.parts = known.parts.filter((_, index, parts) => (parts[index + 1]?.at ?? now) > now - settleMs)
    const most = Math.min(...known.parts.map(({ requests }) => requests))
    return { requestsPerSecond: most * (known.parts.at(-1)?.perRequest ?? 0), most }
  }

  async pause(ms: number): Promise<void> {
    for (let tries = 0; tries < maxTries; tries += 1) {
      try {
        return await this.#store.pause('all', ms)
      } catch {
        await wait(retryMs, undefined, { ref: false })
      }
    }
  }

  async #keepAsking(rate: string, known: Known): Promise<void> {
    const ms = await this.#ask(rate, known)
    if (performance.now() - known.usedAt >= memberMs) this.#known.delete(rate)
    else setTimeout(() => void this.#keepAsking(rate, known), ms).unref()
  }

  /** Returns in how many ms to ask again. */
  async #ask(rate: string, known: Known): Promise<number> {
    try {
      const asked = { until: performance.now() + validMs, wallUntil: Date.now() + validMs }
      const { askers, now, pausedMs } = await this.#store.ask(rate, known.share.requestsPerSecond)
      const part = partOf(this.#store.worker, askers, now)
      const at = performance.now()
      // A worker whose share expired joins again: the others may have seen it leave.
      if (at >= known.until || Date.now() >= known.wallUntil)
        known.parts = [{ at, requests: 0, perRequest: 0, workers: 0 }]
      const before = known.parts.at(-1)
      // Alone twice in a row: who joined meanwhile has seen this worker, and waits.
      if (part.workers === 1 && before?.workers === 1) known.parts = []
      known.parts.push({ ...part, at })
      Object.assign(known, asked)
      if (rate === 'all') this.workers = part.workers
      this.#listener?.changed(pausedMs)
      return before?.workers === part.workers ? askAgainMs : retryMs
    } catch (error) {
      if (!this.#store.isAway(error)) this.#listener?.failed(error)
      return retryMs
    }
  }
}
