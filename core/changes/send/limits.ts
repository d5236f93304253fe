/** The bounds of a run. Read before every request, so a change to the object applies from then on. */
export interface Limits {
  /** Changes in flight at once. */
  inFlight: number
  /** The maximum number of changes tried in this run; undefined for all. */
  maxChanges?: number
  /** The run ends when more than this many have failed; undefined for no bound. */
  maxFailures?: number
  /** The share of the last outcomes that may fail before a breaker opens. */
  maxFailureShare: number
}

export const defaultLimits: Limits = { inFlight: 4, maxFailureShare: 0.5 }
