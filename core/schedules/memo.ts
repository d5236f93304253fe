/** Who made a schedule; a memo's own field, so that nothing else is ever changed or deleted. */
export const madeBy = 'billing-connector'

/** In the memo of the runs that a schedule starts, as `schedule`: what `schedule apply` settled. */
export interface ScheduleMemo {
  /** As many failed runs in a row pause the schedule. */
  pauseAfterFailures?: number
  /** A proven export is expected so long after each of its times. */
  provenWithinMs?: number
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
