/** How fast a run goes, and when it ends if it goes on so. */
export interface Pace {
  perSecond: number
  endsAt: string
}

/**
 * The pace of the last stretch of a run; undefined where nothing was done in it, so that nothing can be said.
 * Times are milliseconds.
 */
export function toPace(stretch: { done: number; left: number; ms: number; now: number }): Pace | undefined {
  const { done, left, ms, now } = stretch
  if (done <= 0 || ms <= 0 || left <= 0) return undefined
  return { perSecond: (done / ms) * 1000, endsAt: new Date(now + (left / done) * ms).toISOString() }
}
