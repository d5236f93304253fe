import type { Cut } from './window.ts'

/** The sizes a window may have. The interface allows up to 100; a service may cap it lower. */
export interface Sizes {
  least: number
  most: number
}

/** Below 80 no window reaches further than the best of 80 to 100 does on the average. */
export const usualSizes: Sizes = { least: 80, most: 100 }

/** A window is thought of whose end lies this far below the place, where the list is known to draw down. */
const furthestBelow = 10
/** A window that reaches less far down may hold nothing that is new. */
const leastReach = 4
/** Of the largest size: how far down the best window reaches on the average over all places. */
const meanReach = 0.87

/**
 * The window that holds the place and reaches furthest below it: 87 places on the average over all places, so a
 * list costs 1.15 requests for every 100 records.
 *
 * With `missed`, which says how likely a window is too low that ends this many places above, the one that goes
 * down furthest for each request, where a miss takes one more and reaches as far as any.
 */
export function cutBelow(place: number, sizes: Sizes, missed = holdsPlace): Cut {
  let best: Cut = { page: 1, pageSize: sizes.most }
  let furthest = -Infinity
  const weigh = (page: number, pageSize: number) => {
    const reach = place - (page - 1) * pageSize
    const miss = missed(pageSize - 1 - reach)
    const perRequest = ((1 - miss) * reach + miss * sizes.most * meanReach) / (1 + miss)
    if (perRequest > furthest) [best, furthest] = [{ page, pageSize }, perRequest]
  }
  for (let pageSize = sizes.most; pageSize > leastReach; pageSize--) {
    // Smaller ones only where none of the usual falls right at all, which happens under a low cap.
    if (pageSize < sizes.least && furthest >= leastReach) break
    const page = Math.floor(place / pageSize) + 1
    weigh(page, pageSize)
    if (page > 1 && place % pageSize < furthestBelow) weigh(page - 1, pageSize)
  }
  return best
}

function holdsPlace(above: number): number {
  return above < 0 ? 1 : 0
}

/** A window that holds both places and all between them, or undefined where no size falls right. */
export function cutAround(first: number, last: number, sizes: Sizes): Cut | undefined {
  for (let size = sizes.most; size > last - first; size--)
    if (Math.floor(first / size) === Math.floor(last / size))
      return { page: Math.floor(first / size) + 1, pageSize: size }
  return undefined
}
