import type { PageChoice } from '../chain/window.ts'

/** The page sizes to use. The API allows up to 100; a service may have a lower cap. */
export interface Sizes {
  least: number
  most: number
}

/** Sizes below 80 never reach further than the best of 80 to 100 does on average. */
export const usualSizes: Sizes = { least: 80, most: 100 }

/** A window that reaches down less than this may hold nothing new. */
const leastReach = 4

/**
 * Chooses the page that contains the place and reaches furthest below it: 87 places on average, so a list costs 1.15
 * requests per 100 records.
 */
export function choosePageBelow(place: number, sizes: Sizes): PageChoice {
  let best: PageChoice = { page: 1, pageSize: sizes.most }
  let furthest = -Infinity
  for (let pageSize = sizes.most; pageSize > leastReach; pageSize--) {
    // Smaller sizes only if none of the usual ones fits, which happens under a low cap.
    if (pageSize < sizes.least && furthest >= leastReach) break
    const page = Math.floor(place / pageSize) + 1
    const reach = place - (page - 1) * pageSize
    if (reach > furthest) [best, furthest] = [{ page, pageSize }, reach]
  }
  return best
}
