import { BillingError, NotFound, Refused } from '../billing/errors.ts'
import { toInstant } from '../billing/instants.ts'
import { askWindow, ChainBroken, fetchPage } from './fetch-window.ts'
import { watchStatuses } from './hidden-records.ts'
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

interface PlannedRange {
  range: Range
  /** Where the oldest record newer than the range was seen. A hint. */
  place?: number
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
  const { state, sizes } = reading
  if (statusesToWatch(options).length > 0) await watchStatuses(reading)
  if (most < 2) return { root: state, ranges: [{ range: state.range }] }
  const first = await askWindow(reading, { page: 1, pageSize: sizes.most }).catch((error: unknown) => {
    if (!(error instanceof ChainBroken)) throw error
  })
  // The service is down, which says nothing about bounds.
  if (first?.kind === 'lost') throw first.error
  const places = Array.from({ length: most - 1 }, (_, range) => Math.floor((count * (range + 1)) / most))
  const bounds = await Promise.all(places.map((place) => boundAt(reading, place)))
  const root = { ...state, ...newPass, sizes: state.sizes, countBefore: count, countAfter: count }
  const found = bounds.flatMap((bound, index) =>
    bound === undefined ? [] : [{ bound, place: places[index]! }],
  )
  return { root, ranges: toRanges(found) }
}

/**
 * One microsecond below the record at a place, so that all records of its time are in the same range. Undefined if the
 * record can't be had.
 */
async function boundAt(reading: Reading, place: number): Promise<number | undefined> {
  const { key } = reading
  const page = await fetchPage(reading, { ordering: key, page: place + 1, pageSize: 1 }).catch(
    (error: unknown) => {
      if (error instanceof NotFound || error instanceof Refused) return undefined
      if (error instanceof BillingError && error.retryable) return undefined
      throw error
    },
  )
  const record = page?.records[0]
  const instant = isRecord(record) ? toInstant(record[key]) : undefined
  return instant === undefined ? undefined : instant - 1
}

function toRanges(found: readonly { bound: number; place: number }[]): PlannedRange[] {
  const descending = found
    .toSorted((one, other) => other.bound - one.bound)
    .filter(({ bound }, index, all) => bound !== all[index - 1]?.bound)
  return [undefined, ...descending].map((above, index) => {
    const below = descending[index]
    return {
      range: { ...(above && { upTo: above.bound }), ...(below && { downTo: below.bound }) },
      ...(above && { place: above.place }),
    }
  })
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
    // What planning cost and found stays with the root.
    counts: { ...root.counts, requests: 0 },
    seen: { ...root.seen, oddNext: 0 },
    reasons: [],
  }
}

/** The states of ranges do not belong to their plan, or its ranges leave a gap. */
export class RangesMismatchError extends Error {
  override readonly name = 'RangesMismatchError'
  readonly retryable = false
  constructor() {
    super('The ranges that were read are not those that were planned. Run the export again.')
  }
}

/** `left`: ranges that have not ended, by their number. */
export type Joined = { kind: 'joined'; state: RangeState } | { kind: 'open'; left: number[] }

/**
 * Joins ranges to the state of the whole read. If all are whole, what is left to do is to look for hidden records. If
 * one broke, the list is to be read page by page, whatever the others do.
 *
 * `states`: the last state of each range, undefined where nothing was read.
 *
 * @throws {RangesMismatchError}
 */
export function joinRanges(plan: RangePlan, states: readonly (RangeState | undefined)[]): Joined {
  const { root, ranges } = plan
  if (!isWithoutGap(plan) || states.length !== ranges.length) throw new RangesMismatchError()
  for (const [index, state] of states.entries())
    if (state !== undefined && !isSame(state, { ...root, ...ranges[index]! })) throw new RangesMismatchError()
  const read = states.filter((state) => state !== undefined)
  const isBroken = read.some(({ phase }) => phase === 'pages')
  const left = [...states.keys()].filter((index) => states[index]?.phase !== 'ended')
  if (left.length > 0 && !isBroken) return { kind: 'open', left }
  const whole = read.reduce(addRange, { ...root, size: root.countBefore })
  return { kind: 'joined', state: { ...whole, phase: isBroken ? 'pages' : 'ended' } }
}

/** Adds what was read of a range, from the newest on, to the state of the whole read. */
function addRange(whole: RangeState, read: RangeState): RangeState {
  const { watched, unmet, seen } = whole
  const { sawBound: _, ...sum } = whole
  const countBefore = whole.countBefore ?? read.countBefore
  return {
    ...sum,
    completeThrough: Math.min(whole.completeThrough, read.completeThrough),
    // The last range ends where the read does.
    ...(read.sawBound && { sawBound: true }),
    // Only sampled records, and statuses, that no range has met can be hidden.
    ...(watched && {
      watched: Object.fromEntries(
        Object.entries(watched).filter(([id]) => Object.hasOwn(read.watched ?? {}, id)),
      ),
    }),
    ...(unmet && { unmet: unmet.filter((status) => read.unmet?.includes(status)) }),
    counts: addByName(whole.counts, read.counts),
    ...(countBefore !== undefined && { countBefore }),
    ...(read.countAfter !== undefined && { countAfter: read.countAfter }),
    seen: {
      ignored: addByName(seen.ignored, read.seen.ignored),
      testMode: seen.testMode || read.seen.testMode,
      oddNext: seen.oddNext + read.seen.oddNext,
    },
    capped: whole.capped || read.capped,
    ties: [...whole.ties, ...read.ties],
    reasons: [...new Set([...whole.reasons, ...read.reasons])],
  }
}

function addByName<Counts extends Readonly<Record<string, number>>>(one: Counts, other: Counts): Counts {
  const sum: Record<string, number> = { ...one }
  for (const name in other) sum[name] = (sum[name] ?? 0) + other[name]!
  return sum as Counts
}

/** Whether the ranges hold every instant of the read once: each begins where the one before it ends, further down. */
function isWithoutGap({ root, ranges }: RangePlan): boolean {
  const bounds = ranges.map(({ range: { downTo = -Infinity } }) => downTo)
  return (
    bounds.at(-1) === (root.range.downTo ?? -Infinity) &&
    ranges.every(
      ({ range: { upTo = Infinity } }, index) =>
        upTo === (index === 0 ? Infinity : bounds[index - 1]) && upTo > (bounds[index] ?? NaN),
    )
  )
}

const isSame = (one: RangeState, other: RangeState): boolean =>
  one.startedAt === other.startedAt &&
  one.range.upTo === other.range.upTo &&
  one.range.downTo === other.range.downTo
