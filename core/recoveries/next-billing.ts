/** Half a day: a date that is today anywhere on Earth has not passed. */
export const dayMarginMs = 12 * 3_600_000

/** Whether a date has passed in every time zone. Checked when a run begins and again before each resume. */
export const hasPassed = (date: string, now: number): boolean =>
  date < new Date(now - dayMarginMs).toISOString().slice(0, 10)
