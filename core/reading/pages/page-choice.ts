import type { PageChoice } from '../chain/window.ts'

/** The page sizes to use. The API allows up to 100; a service may have a lower cap. */
export interface Sizes {
  least: number
  most: number
}

/** Sizes below 80 never reach further than the best of 80 to 100 does on average. */
export const usualSizes: Sizes = { least: 80, most: 100 }

/** Where deletes shift the list down, windows that end up to this far below the place are considered, too. */
const furthestBelow = 10
/** A window that reaches down less than this may hold nothing new. */
const leastReach = 4
/** How far down the best window reaches, averaged over all places, as a share of the largest size. */
const meanReach = 0.87

/**
 * Chooses the page that contains the place and reaches furthest below it: 87 places on average, so a list costs 1.15
 * requests per 100 records.
 *
 * `missed` is the probability that a window ending this many places above is too low to link. The page chosen makes the
 * most progress per request, where a miss costs one more request.
 */
export function choosePageBelow(place: number, sizes: Sizes, missed = holdsPlace): PageChoice {
  let best: PageChoice = { page: 1, pageSize: sizes.most }
  let furthest = -Infinity
  const weigh = (page: number, pageSize: number) => {
    const reach = place - (page - 1) * pageSize
    const miss = missed(pageSize - 1 - reach)
    const perRequest = ((1 - miss) * reach + miss * sizes.most * meanReach) / (1 + miss)
    if (perRequest > furthest) [best, furthest] = [{ page, pageSize }, perRequest]
  }
  for (let pageSize = sizes.most; pageSize > leastReach; pageSize--) {
    // Smaller sizes only if none of the usual ones fits, which happens under a low cap.
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

/** The page that contains both places and all between them; undefined if no page size fits. */
export function choosePageAround(first: number, last: number, sizes: Sizes): PageChoice | undefined {
  for (let size = sizes.most; size > last - first; size--)
    if (Math.floor(first / size) === Math.floor(last / size))
      return { page: Math.floor(first / size) + 1, pageSize: size }
  return undefined
}
