import type { Client, ScheduleDescription } from '@temporalio/client'
import { scheduleMemoOf, type EarlierSlots } from './schedule-memo.ts'
import { timesOf } from './schedule-times.ts'

/** Slots whose time to be proven ended longer ago than this have been looked at, or nobody watches. */
const keptMs = 7 * 24 * 3_600_000
/** The memo goes with every run of the schedule, so it stays small. */
const mostSlots = 300

/**
 * The slots that a schedule has had until now, to be kept in its memo when its definition changes: Temporal knows only
 * the times of the new one, and the watch has yet to judge the old.
 */
export async function earlierSlots(of: {
  client: Client
  description: ScheduleDescription
  now: number
}): Promise<EarlierSlots[]> {
  const { client, description, now } = of
  const { scheduleId, action, spec } = description
  const { provenWithinMs, earlier = [] } = scheduleMemoOf(action)
  const kept = earlier.filter((one) => one.until > now - one.provenWithinMs - keptMs)
  if (provenWithinMs === undefined) return kept
  const from = Math.max(changedAt(description), now - provenWithinMs - keptMs)
  const times = await timesOf({ client, scheduleId, from, to: now })
  const input = action.args?.[0]
  const last = { until: now, times, provenWithinMs, jitterMs: spec.jitter ?? 0, input }
  return newest([...kept, last])
}

/** Since when a schedule has had the times that it has now. */
export const changedAt = ({ info }: Pick<ScheduleDescription, 'info'>): number =>
  (info.lastUpdatedAt ?? info.createdAt).getTime()

function newest(all: readonly EarlierSlots[]): EarlierSlots[] {
  let left = mostSlots
  const kept = all.toReversed().map((one) => {
    const times = left > 0 ? one.times.slice(-left) : []
    left -= times.length
    return { ...one, times }
  })
  return kept.toReversed().filter(({ times }) => times.length > 0)
}
