import { BillingError, NotFound, Refused } from '../billing/errors.ts'
import { watchStatuses } from './hidden-records.ts'
import { toInstant, type Instant } from '../billing/instants.ts'
import {
  newPass,
  startState,
  statusesToWatch,
  type Range,
  type RangeState,
  type ReadOptions,
} from './range-state.ts'
import { Reading } from './reading.ts'
import { isRecord } from './record.ts'

/** How a list is read in ranges, one or more: fixed before the first of them begins, and never changed. */
export interface RangePlan {
  /** The state of the whole read before its ranges. */
  root: RangeState
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
export function startRange({ root }: RangePlan, { range, place }: PlannedRange): RangeState {
  const { upTo } = range
  return {
    ...root,
    range,
    ...(upTo !== undefined && { frontier: { at: upTo, closed: false, ids: [] } }),
    ...(place !== undefined && { place }),
    requests: { made: 0, oddNext: 0 },
    reasons: [],
  }
}

/**
 * Samples the statuses of a list, and divides it into ranges of `created` with about as many records each, by one small
 * request for each bound. One more shows how large a page may be: only page 1 shows that, and a range does not begin
 * there. The whole list is one range if `most` is 1.
 *
 * The proof holds for any bounds, so the answers need not be true: a bad bound only makes ranges of unequal length.
 */
export async function planRead(
  options: ReadOptions & {
    /** The service's count of the list. */
    count?: number | undefined
    most: number
  },
): Promise<RangePlan> {
  const { count = 0, most } = options
  const reading = new Reading(options, startState(options))
  const { fetcher, state } = reading
  if (statusesToWatch(options).length > 0) await watchStatuses(reading)
  if (most < 2) return { root: state, ranges: [{ range: state.range }] }
  const first = await fetcher.ask({ page: 1, pageSize: fetcher.sizes.most })
  // The service is down, which says nothing about bounds.
  if (first.kind === 'lost') throw first.error
  const places = Array.from({ length: most - 1 }, (_, at) => Math.floor((count * (most - 1 - at)) / most))
  const bounds = await Promise.all(places.map((place) => boundAt(reading, place)))
  const { sizes } = state
  const root: RangeState = {
    ...state,
    ...newPass,
    sizes,
    countBefore: count,
    countAfter: count,
  }
  return { root, ranges: toRanges(bounds.filter((bound) => bound !== undefined)) }
}

interface Bound {
  at: Instant
  place: number
}

/**
 * One microsecond below the record at a place, so that all records of its time are in the same range. Undefined if the
 * record can't be had.
 */
async function boundAt({ fetcher, key }: Reading, place: number): Promise<Bound | undefined> {
  const request = { ordering: key, page: place + 1, pageSize: 1 }
  const page = await fetcher.page(request).catch((error: unknown) => {
    if (!(error instanceof BillingError)) throw error
    if (error.retryable || error instanceof NotFound || error instanceof Refused) return undefined
    throw error
  })
  const record = page?.records[0]
  const at = isRecord(record) ? toInstant(record[key]) : undefined
  return at === undefined ? undefined : { at: at - 1, place }
}

function toRanges(bounds: readonly Bound[]): PlannedRange[] {
  const descending = bounds
    .toSorted((one, other) => other.at - one.at)
    .filter(({ at }, place, all) => at !== all[place - 1]?.at)
  return [undefined, ...descending].map((above, index) => {
    const below = descending[index]
    return {
      range: { ...(above && { upTo: above.at }), ...(below && { downTo: below.at }) },
      ...(above && { place: above.place }),
    }
  })
}
