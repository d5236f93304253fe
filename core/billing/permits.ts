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

/**
 * The permits of a grant, by when it was asked for and answered. It was made at some time between: a permit is neither used
 * too early nor too late.
 */
export function toPermits(options: {
  grant: Grant
  requestsPerSecond: number
  askedAt: number
  answeredAt: number
}): Permit[] {
  const { grant, requestsPerSecond, askedAt, answeredAt } = options
  const validMs = toleranceMs({ requestsPerSecond, workers: Math.max(1, grant.workers) })
  return grant.waitsMs.map((waitMs, index) => ({
    number: grant.first + index,
    dueAt: answeredAt + waitMs,
    voidAt: askedAt + waitMs + validMs,
  }))
}
