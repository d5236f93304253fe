import type { Client, ScheduleDescription } from '@temporalio/client'
import { scheduleMemoOf, type EarlierSlots } from '../core/schedules/memo.ts'
import { changedAt } from '../core/schedules/slots.ts'
import { timesOf } from './schedule-times.ts'

/** Slots with an older deadline than this were already checked by the watch, or nobody watches. */
const keptMs = 7 * 24 * 3_600_000
/** The memo is copied to every run of the schedule, so it must stay small. */
const maxSlots = 300

/**
 * The past slots of a schedule, kept in its memo when its definition changes: Temporal knows only the times of the new
 * definition, and the watch has yet to check the old ones.
 */
export async function earlierSlots(options: {
  client: Client
  description: ScheduleDescription
  now: number
}): Promise<EarlierSlots[]> {
  const { client, description, now } = options
  const { scheduleId, action, spec } = description
  const { provenWithinMs, earlier = [] } = scheduleMemoOf(action)
  const kept = earlier.filter((earlierSlot) => earlierSlot.until > now - earlierSlot.provenWithinMs - keptMs)
  if (provenWithinMs === undefined) return kept
  const from = Math.max(changedAt(description), now - provenWithinMs - keptMs)
  const times = await timesOf({ client, scheduleId, from, to: now })
  const input = action.args?.[0]
  const last = { until: now, times, provenWithinMs, jitterMs: spec.jitter ?? 0, input }
  return newest([...kept, last])
}

function newest(all: readonly EarlierSlots[]): EarlierSlots[] {
  let remaining = maxSlots
  const kept = all.toReversed().map((earlierSlot) => {
    const times = remaining > 0 ? earlierSlot.times.slice(-remaining) : []
    remaining -= times.length
    return { ...earlierSlot, times }
  })
  return kept.toReversed().filter(({ times }) => times.length > 0)
}
