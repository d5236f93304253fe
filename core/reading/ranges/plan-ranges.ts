import { BillingError, NotFound, Refused } from '../../billing/errors.ts'
import { watchStatuses } from '../hidden-records.ts'
import { toInstant, type Instant } from '../instant.ts'
import type { ReadOptions } from '../options.ts'
import type { Sizes } from '../pages/page-choice.ts'
import { Reading } from '../reading.ts'
import { isRecord } from '../record.ts'
import { Source } from '../source.ts'
import { newPass, startState, statusesToWatch } from '../start-state.ts'
import type { PlannedRange, RangePlan } from './range-plan.ts'

/**
 * Divides a list into ranges of `created` with about as many records each, by one small request for each bound. One
 * more shows how large a page may be: only page 1 shows that, and a range does not begin there.
 *
 * The proof holds for any bounds, so the answers need not be true: a bad bound only makes ranges of unequal length.
 */
export async function planRanges(
  options: ReadOptions & {
    /** The service's count of the list. */
    count: number
    most: number
  },
): Promise<RangePlan> {
  const { count, most } = options
  const reading = new Reading(options, startState(options))
  if (statusesToWatch(options).length > 0) await watchStatuses(reading)
  const places = Array.from({ length: most - 1 }, (_, at) => Math.floor((count * (most - 1 - at)) / most))
  const { bounds, sizes } = await probe(reading, places)
  reading.counted(count)
  const { state: root } = reading.toStep({ ...newPass, sizes }, { records: [], rejected: [] })
  return { root, ranges: toRanges(bounds) }
}

interface Bound {
  at: Instant
  place: number
}

async function probe(
  reading: Reading,
  places: readonly number[],
): Promise<{ bounds: Bound[]; sizes: Sizes }> {
  const { options, key, requests } = reading
  const { fetchPage, filters = {} } = options
  // A stale answer gives a bound as good as any.
  const freshness = { isStale: () => false, stayedStale() {} }
  const source = new Source({ key, filters, fetchPage, requests, freshness, sizes: undefined })
  const first = await source.ask({ page: 1, pageSize: source.sizes.most })
  // The service is down, which says nothing about bounds.
  if (first.kind === 'lost') throw first.error
  const bounds = await Promise.all(places.map((place) => boundAt(source, place)))
  return { bounds: bounds.filter((bound) => bound !== undefined), sizes: source.sizes }
}

/**
 * One microsecond below the record at a place, so that all records of its time are in the same range. Undefined if the
 * record can't be had.
 */
async function boundAt(source: Source, place: number): Promise<Bound | undefined> {
  const request = { ordering: source.key, page: place + 1, pageSize: 1 }
  const page = await source.page(request).catch((error: unknown) => {
    if (!(error instanceof BillingError)) throw error
    if (error.retryable || error instanceof NotFound || error instanceof Refused) return undefined
    throw error
  })
  const record = page?.records[0]
  const at = isRecord(record) ? toInstant(record[source.key]) : undefined
  return at === undefined ? undefined : { at: at - 1, place }
}

function toRanges(bounds: readonly Bound[]): PlannedRange[] {
  const descending = bounds
    .toSorted((one, other) => other.at - one.at)
    .filter(({ at }, place, all) => at !== all[place - 1]?.at)
  return [undefined, ...descending].map((above, at) => {
    const below = descending[at]
    return {
      range: { ...(above && { upTo: above.at }), ...(below && { downTo: below.at }) },
      ...(above && { place: above.place }),
    }
  })
}
