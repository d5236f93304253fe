/** Marks a schedule as ours in its memo, so that no other schedule is ever changed or deleted. */
export const madeBy = 'connector'

/** Set by `schedule apply`; in the memo of the runs that a schedule starts, as `schedule`. */
export interface ScheduleMemo {
  /** This many failed runs in a row pause the schedule. */
  pauseAfterFailures?: number
  /** A proven export is due this long after each of its times. */
  provenWithinMs?: number
  /** The schedule as the file defined it. */
  definition?: Readonly<Record<string, unknown>>
  /** A hash of the schedule as `apply` left it; a different hash shows that it was changed since. */
  fingerprint?: string
}

export function isOwn(
  memo: Readonly<Record<string, unknown>> | undefined,
  { taskQueue }: { taskQueue: string },
): boolean {
  return memo?.['madeBy'] === madeBy && memo['taskQueue'] === taskQueue
}

export const scheduleMemoOf = (action: {
  memo?: Readonly<Record<string, unknown>> | undefined
}): ScheduleMemo => action.memo?.['schedule'] ?? {}
