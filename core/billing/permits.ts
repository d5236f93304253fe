/** What several workers share of a rate: one permit is one request, at a time of its own. */

/** Where the permits of all workers come from. */
export interface Permits {
  take(ask: PermitRequest): Promise<Grant>
  /** Whether a question failed because the store is away; it is then asked again. */
  isAway(error: unknown): boolean
  /** Nobody gets a permit for this long. */
  pause(ms: number): Promise<void>
  /** Halves the rate of all, once for all permits that were given before. */
  slowDown(permit: number): Promise<void>
}

export interface PermitRequest {
  requestsPerSecond: number
  /** The run's own rate, if it has one. */
  run: { name: string; requestsPerSecond: number } | undefined
  wanted: number
  write: boolean
  /** More requests of the same kind wait than `wanted`. */
  leftWaiting: boolean
  /** How long the one that waits longest has waited: a permit is not due before. */
  waitedMs: number
}

export interface Grant {
  /** The number of the first permit; each of the others is one higher. */
  first: number
  /**
   * When each is due, in ms from the moment of the grant; slightly negative if it was due before. More than were wanted if
   * this worker is alone: its next requests may use them, whether they write or read.
   */
  waitsMs: readonly number[]
  /** When to ask again for what was not granted. */
  retryMs: number
  /** The run's own rate is the reason why nothing was granted. */
  heldByRun: boolean
  /** How many workers share the rate now. */
  workers: number
  /** The moment of the grant, in ms by the store's clock. */
  at: number
}

export interface Permit {
  number: number
  /** By performance.now(). */
  dueAt: number
  voidAt: number
}

/** A permit may be used this much later than it is due, at least. A worker that is alone has nobody to wait for. */
const leastToleranceMs = { alone: 30, several: 60 }
const mostToleranceMs = 100
/** The jitter of the network and of timers that the bound of r + 1 requests a second leaves room for. */
const jitterMs = 5
const mostShare = 0.985

/** The share of the rate that is given out as permits; the store uses the same (migrations/postgres/0006-rates.ts). */
function shareOf(requestsPerSecond: number, workers: number): number {
  const lateMs = workers === 1 ? leastToleranceMs.alone : leastToleranceMs.several
  return Math.min(mostShare, (requestsPerSecond + 1) / (requestsPerSecond * (1 + (lateMs + jitterMs) / 1000)))
}

/**
 * How much later than it is due a permit may be used. In any second then at most r + 1 requests leave, whoever was frozen:
 * (1 + tolerance) * share * r + 1 is not more.
 */
export function toleranceMs({
  requestsPerSecond,
  workers,
}: {
  requestsPerSecond: number
  workers: number
}): number {
  if (requestsPerSecond === Number.POSITIVE_INFINITY) return Number.POSITIVE_INFINITY
  const granted = requestsPerSecond * shareOf(requestsPerSecond, workers)
  return Math.min(mostToleranceMs, ((requestsPerSecond + 1) / granted - 1) * 1000 - jitterMs)
}

/** Two times by performance.now(). */
interface Between {
  earliest: number
  latest: number
}

/**
 * How far two clocks may move against each other: NTP corrects one by up to 500 ppm, and crystals differ by 100. A clock
 * that is corrected faster, as by chrony, makes the times of a grant wrong by at most what its question took.
 */
const mostDrift = 0.001

/**
 * When a grant was made, by performance.now(). It was made between question and answer, but a process that is busy with
 * replies reads the answer 10 ms late. So each question also bounds the difference between the store's clock and this
 * one, and what several have in common is narrower. If they have nothing in common, a clock was set, and the last question
 * counts alone.
 */
export class GrantClock {
  /** The difference, this clock minus the store's, is between these two, as known at `since`. */
  #difference = { least: Number.NEGATIVE_INFINITY, most: Number.POSITIVE_INFINITY, since: 0 }

  /** The permits of a grant: none is used too early or too late, whenever it was made. */
  toPermits(options: {
    grant: Grant
    requestsPerSecond: number
    askedAt: number
    answeredAt: number
  }): Permit[] {
    const { grant, requestsPerSecond } = options
    const { earliest, latest } = this.madeBetween({ at: grant.at, ...options })
    const validMs = toleranceMs({ requestsPerSecond, workers: Math.max(1, grant.workers) })
    return grant.waitsMs.map((waitMs, index) => ({
      number: grant.first + index,
      dueAt: latest + waitMs,
      voidAt: earliest + waitMs + validMs,
    }))
  }

  /** When the grant of one question was made. */
  madeBetween({ at, askedAt, answeredAt }: { at: number; askedAt: number; answeredAt: number }): Between {
    const drift = (answeredAt - this.#difference.since) * mostDrift
    const own = { least: askedAt - at, most: answeredAt - at }
    const common = {
      least: Math.max(own.least, this.#difference.least - drift),
      most: Math.min(own.most, this.#difference.most + drift),
    }
    const { least, most } = common.least <= common.most ? common : own
    this.#difference = { least, most, since: answeredAt }
    return { earliest: at + least, latest: at + most }
  }
}
