import type { Range, ReadState } from '../state.ts'

/** How a list is read in ranges: fixed before the first of them begins, and never changed. */
export interface RangePlan {
  /** The state of the whole read before its ranges. */
  root: ReadState
  /** From the newest to the oldest. Together they hold every instant exactly once. */
  ranges: PlannedRange[]
}

export interface PlannedRange {
  range: Range
  /** Where the oldest record newer than the range was seen. A hint. */
  place?: number
}

/**
 * The state from which a range is read. It begins as a read resumes: with a frontier, of which nothing has been taken
 * yet. Therefore its first window must hold a record strictly newer than the range, like every later link.
 */
export function startRange({ root }: RangePlan, { range, place }: PlannedRange): ReadState {
  const { upTo } = range
  return {
    ...root,
    range,
    pass: {
      ...root.pass,
      ...(upTo !== undefined && { frontier: { at: upTo, closed: false, ids: [] } }),
      ...(place !== undefined && { place }),
    },
    requests: { made: 0, oddNext: 0 },
    reasons: [],
  }
}
