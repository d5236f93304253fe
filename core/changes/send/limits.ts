/** The bounds of a run. Read before every request, so a change to the object applies from then on. */
export interface Limits {
  /** Changes at once on their way to the service. As many answers may be recorded meanwhile. */
  inFlight: number
  /** The maximum number of changes tried in this run; undefined for all. */
  maxChanges?: number
  /** The run ends when more than this many have failed; undefined for no bound. */
  maxFailures?: number
  /** The share of the last outcomes that may fail before a breaker opens. */
  maxFailureShare: number
}

export const defaultLimits: Limits = { inFlight: 4, maxFailureShare: 0.5 }
