/** Who made a schedule; a memo's own field, so that nothing else is ever changed or deleted. */
export const madeBy = 'billing-connector'

/** Slots that a schedule had before its definition was changed. */
export interface EarlierSlots {
  /** When the definition was changed, in ms since 1970. */
  until: number
  /** When its runs were to start, as Temporal reckoned then: with jitter, in ms since 1970. */
  times: readonly number[]
  provenWithinMs: number
  jitterMs: number
  /** What its runs were given. */
  input: unknown
}

/** In the memo of the runs that a schedule starts, as `schedule`: what `schedule apply` settled. */
export interface ScheduleMemo {
  /** As many failed runs in a row pause the schedule. */
  pauseAfterFailures?: number
  /** A proven export is expected so long after each of its times. */
  provenWithinMs?: number
  /** What the watch may yet have to judge, oldest first. */
  earlier?: readonly EarlierSlots[]
  /** What the file said, to show what will change. */
  definition?: Readonly<Record<string, unknown>>
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
