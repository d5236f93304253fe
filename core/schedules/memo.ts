/** Marks a schedule as ours in its memo, so that no other schedule is ever changed or deleted. */
export const madeBy = 'connector'

/** Slots that a schedule had before its definition was changed. */
export interface EarlierSlots {
  /** When the definition was changed, in ms since 1970. */
  until: number
  /** When its runs were due, as Temporal calculated then: with jitter, in ms since 1970. */
  times: readonly number[]
  provenWithinMs: number
  jitterMs: number
  /** The input of its runs. */
  input: unknown
}

/** Set by `schedule apply`; in the memo of the runs that a schedule starts, as `schedule`. */
export interface ScheduleMemo {
  /** This many failed runs in a row pause the schedule. */
  pauseAfterFailures?: number
  /** A proven export is due this long after each of its times. */
  provenWithinMs?: number
  /** Slots that the watch may still have to judge, oldest first. */
  earlier?: readonly EarlierSlots[]
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
