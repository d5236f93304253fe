/** Each change of a run, counted once, by where it stands. */
export interface ReportCounts {
  /** Never sent so far, or proven not to be there. */
  staged: number
  done: number
  rejected: number
  /** Sent, and what became of it is not settled. */
  unknown: number
  /** For a person. */
  parked: number
  /** Left out on purpose: done by an earlier run, or dropped by a person. */
  skipped: number
  /** Left when the run ended, and what a bound kept from being staged at all. */
  notTried: number
}
