/**
 * The rate of several workers together. Each has a share: a whole number of requests that it may send in any second, so
 * that the sum holds for any second, however their requests fall. A share is a lease. A worker whose lease has ended, for
 * example because it was frozen, sends nothing until it has a new one.
 */
import { setTimeout as wait } from 'node:timers/promises'
import type { Fleet, Quota, Share } from './rate-limit.ts'

/** Where the workers keep their shares of each rate. */
export interface ShareStore {
  /** Identifies this worker. */
  readonly worker: string
  /** The shares of a rate as text, and the time in ms by the store's clock. `pausedMs`: how long nobody may send. */
  read(rate: string): Promise<{ shares: string; now: number; pausedMs: number }>
  /** Replaces the shares, unless another worker has done so since; returns whether it did. */
  replace(rate: string, change: { from: string; to: string }): Promise<boolean>
  pause(rate: string, ms: number): Promise<void>
  /** Whether an error says that the store is away, so that it is asked again. */
  isAway(error: unknown): boolean
}

/** Longer than a hiccup of the database takes; after a worker was killed, its share is lost for as long. */
const leaseMs = 2_000
const renewMs = 500
/** After an error, or with less than the share that is due. */
const retryMs = 250
/** A worker that has not asked for this long has no share. */
const memberMs = 10_000
/** Another worker may have sent just before it gave up what is new to this one. */
const settleMs = 1_000
const maxTries = 20

/** What a worker holds of a rate. `at`: when it asked, by the store's clock. */
interface Held {
  requests: number
  perSecond: number
  at: number
}

interface Taken {
  shares: Record<string, Held>
  /** Requests in any second; `due` is more while other workers do not know yet that there is one more. */
  requests: number
  due: number
  /** The rate that belongs to one of these requests. */
  perRequest: number
  workers: number
}

/** Takes a worker's share: an equal part, but never more than the others leave. */
export function takeShare(options: {
  shares: Readonly<Record<string, Held>>
  worker: string
  perSecond: number
  now: number
}): Taken {
  const { worker, now } = options
  const others = Object.entries(options.shares)
    // A share from the future: the clock was set back.
    .map(([name, held]) => [name, { ...held, at: Math.min(held.at, now) }] as const)
    .filter(([name, { at }]) => name !== worker && now - at < memberMs)
  const names = [worker, ...others.map(([name]) => name)].toSorted()
  const perSecond = Math.min(options.perSecond, ...others.map(([, held]) => held.perSecond))
  const total = Math.ceil(perSecond)
  const whole = Math.floor(total / names.length)
  // With more workers than requests they take turns, ten seconds each.
  const turn = whole === 0 ? Math.floor(now / memberMs) : 0
  const place = (names.indexOf(worker) + turn) % names.length
  const due = whole + (place < total % names.length ? 1 : 0)
  const inUse = others.filter(([, { at }]) => now - at < leaseMs)
  const left = inUse.reduce((rest, [, held]) => rest - held.requests, total)
  const requests = Math.max(0, Math.min(due, left))
  const mine = { requests, perSecond: options.perSecond, at: now }
  return {
    shares: { ...Object.fromEntries(others), [worker]: mine },
    requests,
    due,
    perRequest: perSecond / total,
    workers: names.length,
  }
}

/** This worker's share of one rate. Times are by performance.now(). */
interface Lease {
  share: Readonly<Share>
  usedAt: number
  requests: number
  perRequest: number
  /** More than `requests`, from a time on. */
  more: { requests: number; from: number } | undefined
  until: number
  /** By the wall clock: the other one stands still while a machine is suspended. */
  wallUntil: number
}

const nothing: Quota = { requestsPerSecond: 0, most: 0 }

export class FleetRate implements Fleet {
  /** How many workers share the rate of all. */
  workers = 1
  readonly #store: ShareStore
  readonly #leases = new Map<string, Lease>()
  #listener: Parameters<Fleet['listen']>[0] | undefined

  constructor(store: ShareStore) {
    this.#store = store
  }

  listen(listener: Parameters<Fleet['listen']>[0]): void {
    this.#listener = listener
  }

  /** What this worker may send now of the rate `all` or of a run's. The share is renewed as long as someone asks. */
  quotaOf(rate: string, share: Readonly<Share>): Quota {
    const { requestsPerSecond } = share
    if (requestsPerSecond === Number.POSITIVE_INFINITY) return { requestsPerSecond, most: requestsPerSecond }
    const now = performance.now()
    const lease = this.#leases.get(rate)
    if (lease === undefined) {
      const none = { requests: 0, perRequest: 0, more: undefined, until: 0, wallUntil: 0 }
      const created = { share, usedAt: now, ...none }
      this.#leases.set(rate, created)
      void this.#renew(rate, created)
      return nothing
    }
    lease.share = share
    lease.usedAt = now
    if (now >= lease.until || Date.now() >= lease.wallUntil) return nothing
    if (lease.more !== undefined && now >= lease.more.from) {
      lease.requests = lease.more.requests
      lease.more = undefined
    }
    return { requestsPerSecond: lease.requests * lease.perRequest, most: lease.requests }
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

  async #renew(rate: string, lease: Lease): Promise<void> {
    while (performance.now() - lease.usedAt < memberMs)
      await wait(await this.#ask(rate, lease), undefined, { ref: false })
    this.#leases.delete(rate)
  }

  /** Returns in how many ms to ask again. */
  async #ask(rate: string, lease: Lease): Promise<number> {
    try {
      const asked = { monotonic: performance.now(), wall: Date.now() }
      const { taken, pausedMs } = await this.#take(rate, lease)
      this.#apply(lease, taken, asked)
      if (rate === 'all') this.workers = taken.workers
      this.#listener?.changed(pausedMs)
      return taken.requests < taken.due ? retryMs : renewMs
    } catch (error) {
      if (!this.#store.isAway(error)) this.#listener?.failed(error)
      return retryMs
    }
  }

  async #take(rate: string, lease: Lease): Promise<{ taken: Taken; pausedMs: number }> {
    for (;;) {
      const { requestsPerSecond: perSecond } = lease.share
      const { shares: from, now, pausedMs } = await this.#store.read(rate)
      const shares = JSON.parse(from) as Record<string, Held>
      const taken = takeShare({ shares, worker: this.#store.worker, perSecond, now })
      // Before others may know of it: this process may be frozen until they use it.
      this.#giveUp(lease, taken.requests)
      if (await this.#store.replace(rate, { from, to: JSON.stringify(taken.shares) }))
        return { taken, pausedMs }
    }
  }

  #giveUp(lease: Lease, most: number): void {
    lease.requests = Math.min(lease.requests, most)
    if (lease.more !== undefined && lease.more.requests > most) lease.more = undefined
  }

  #apply(lease: Lease, taken: Taken, asked: { monotonic: number; wall: number }): void {
    const now = performance.now()
    const isOver = now >= lease.until || Date.now() >= lease.wallUntil
    const { more } = lease
    const known = isOver ? 0 : more !== undefined && now >= more.from ? more.requests : lease.requests
    const isMore = taken.requests > known && taken.workers > 1
    lease.requests = isMore ? known : taken.requests
    if (!isMore) lease.more = undefined
    else if (more?.requests !== taken.requests)
      lease.more = { requests: taken.requests, from: now + settleMs }
    lease.perRequest = taken.perRequest
    lease.until = asked.monotonic + leaseMs
    lease.wallUntil = asked.wall + leaseMs
  }
}
