/** The bounds of a run. Read before every request, so a change to the object applies from then on. */
export interface Limits {
  /** Changes at once on their way to the service. As many answers may be recorded meanwhile. */
  inFlight: number
  /** The maximum number of changes tried in this run; undefined for all. */
  maxChanges?: number | undefined
  /** The run ends when more than this many have failed; undefined for no bound. */
  maxFailures?: number | undefined
  /** The share of the last outcomes that may fail before a breaker opens. */
  maxFailureShare: number
}

export const defaultLimits: Limits = { inFlight: 4, maxFailureShare: 0.5 }

/** The bounds of a plan, where it has none the defaults and the worker's own concurrency. */
export const limitsOf = (
  plan: { [name in 'concurrency' | Exclude<keyof Limits, 'inFlight'>]?: number | undefined },
  worker: { concurrency: number },
): Limits => ({
  ...plan,
  inFlight: plan.concurrency ?? worker.concurrency,
  maxFailureShare: plan.maxFailureShare ?? defaultLimits.maxFailureShare,
})
