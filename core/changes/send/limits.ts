/** The bounds of a run. Read anew before every request: change the object, and it holds from then on. */
export interface Limits {
  /** Changes on their way at once. */
  inFlight: number
  /** The most changes that are tried in this run; undefined for all. */
  maxChanges?: number
  /** The run ends when more than this many have failed; undefined for no such bound. */
  maxFailures?: number
  /** The share of the last outcomes that may have failed before a lane's breaker opens. */
  maxFailureShare: number
}

export const defaultLimits: Limits = { inFlight: 4, maxFailureShare: 0.5 }
