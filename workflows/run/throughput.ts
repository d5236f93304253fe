/** The rate of a run, and its estimated end at that rate. */
export interface Throughput {
  perSecond: number
  endsAt: string
}

/** The throughput of a run's last segment; undefined if nothing was done in it. Times are in milliseconds. */
export function toThroughput(segment: {
  done: number
  left: number
  ms: number
  now: number
}): Throughput | undefined {
  const { done, left, ms, now } = segment
  if (done <= 0 || ms <= 0 || left <= 0) return undefined
  return { perSecond: (done / ms) * 1000, endsAt: new Date(now + (left / done) * ms).toISOString() }
}
