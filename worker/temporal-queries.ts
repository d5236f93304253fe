import type { Client, ScheduleDescription } from '@temporalio/client'
import type { NativeConnection } from '@temporalio/worker'
import type { SearchAttributeName } from '../core/runs/name.ts'
import { scheduleMemoOf, type EarlierSlots } from '../core/schedules/memo.ts'
import { changedAt } from '../core/schedules/slots.ts'

/**
 * The times of a schedule after `from`, up to `to` (ms since 1970), as Temporal computes them for its
 * current definition.
 */
export async function timesOf(range: {
  client: Client
  scheduleId: string
  from: number
  to: number
}): Promise<number[]> {
  const { client, scheduleId, to } = range
  const times: number[] = []
  // The server limits each response; every request continues after the last time.
  for (let from = range.from; from < to; from = times.at(-1) ?? to) {
    const { startTime: found } = await client.workflowService.listScheduleMatchingTimes({
      namespace: client.options.namespace,
      scheduleId,
      startTime: toTimestamp(from),
      endTime: toTimestamp(to),
    })
    const more = (found ?? []).map(toMs).filter((at) => at > from)
    if (more.length === 0) return times
    times.push(...more)
  }
  return times
}

type Timestamp = NonNullable<
  Parameters<Client['workflowService']['listScheduleMatchingTimes']>[0]['startTime']
>

const toTimestamp = (ms: number): Timestamp => ({
  // Seconds are a Long in the type, but a number is accepted.
  seconds: Math.floor(ms / 1000) as unknown as NonNullable<Timestamp['seconds']>,
  nanos: (ms % 1000) * 1e6,
})

const toMs = ({ seconds, nanos }: Timestamp): number => Number(seconds) * 1000 + (nanos ?? 0) / 1e6

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

/** A poll waits up to a minute; a poller not seen for longer has stopped. */
const seenWithinMs = 90_000

/** The identities of those that poll a task queue, the last seen first. Temporal lists others, minutes after they stopped. */
export async function findPollers(of: {
  service: Pick<NativeConnection['workflowService'], 'describeTaskQueue'>
  namespace: string
  taskQueue: string
}): Promise<string[]> {
  const { service, namespace, taskQueue } = of
  const { pollers } = await service.describeTaskQueue({ namespace, taskQueue: { name: taskQueue } })
  return (pollers ?? [])
    .map(({ identity, lastAccessTime }) => ({
      identity: identity ?? '',
      seenAt: Number(lastAccessTime?.seconds ?? 0) * 1000,
    }))
    .filter(({ seenAt }) => seenAt > Date.now() - seenWithinMs)
    .toSorted((a, b) => b.seenAt - a.seenAt)
    .map(({ identity }) => identity)
}

/** Temporal's type numbers. */
const types: Readonly<Record<SearchAttributeName, number>> = { Verdict: 2, NeedsPerson: 5, Resource: 7 }

/**
 * Our search attributes that the namespace has, with the right type; undefined if they cannot be listed. Setting any other
 * would block a workflow.
 */
export async function findSearchAttributes(options: {
  connection: Pick<NativeConnection, 'withDeadline'> & {
    operatorService: Pick<NativeConnection['operatorService'], 'listSearchAttributes'>
  }
  namespace: string
}): Promise<SearchAttributeName[] | undefined> {
  const { connection, namespace } = options
  const ask = () => connection.operatorService.listSearchAttributes({ namespace })
  const found = await connection.withDeadline(Date.now() + 5_000, ask).catch(() => undefined)
  if (found === undefined) return undefined
  return searchAttributeNames.filter((name) => Number(found.customAttributes?.[name]) === types[name])
}

export const searchAttributeNames = Object.keys(types) as SearchAttributeName[]
