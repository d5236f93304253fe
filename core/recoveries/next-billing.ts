/** Half a day: wherever the person is, a date that is today there has not passed. */
const dayMarginMs = 12 * 3_600_000

/** Whether a date is in the past everywhere. The same when a run begins and before each resume. */
export const hasPassed = (date: string, now: number): boolean =>
  date < new Date(now - dayMarginMs).toISOString().slice(0, 10)
