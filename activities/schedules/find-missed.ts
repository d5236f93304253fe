import { Context, activityInfo } from '@temporalio/activity'
import type { Client, ScheduleDescription } from '@temporalio/client'
import { parseWatchInput } from '../../core/schedules/watch-input.ts'
import { readPublished, type PublishedNote } from '../../core/exports/publication-log.ts'
import type { ActivityDeps } from '../deps.ts'
import { toExpected } from '../../core/schedules/expected-exports.ts'
import { lacksOf, type Night } from '../../core/schedules/slots.ts'
import { kindsFor, type NoticeKind } from '../../core/notifications/notification.ts'
import { isOwn, scheduleMemoOf } from '../../core/schedules/memo.ts'
import { tellNight } from './explain-missed-slot.ts'

const usualLookBackHours = 24

export interface Missed {
  schedule: string
  /** When it was to run, and by when it was to be proven. */
  at: string
  by: string
  /** One sentence: what is not there, and what became of the run. */
  says: string
}

export interface WatchStep {
  /** The next look begins here. */
  until: string
  /** How many nights were looked at. */
  nights: number
  missed: Missed[]
  notifies: NoticeKind[]
}

/** Finds the nights whose time to be proven ended between two moments, and that have no proven export. */
export function createFindMissed(deps: ActivityDeps) {
  return async function findMissed(step: {
    input: unknown
    /** Where the last look ended; undefined at the first. */
    since: string | undefined
    until: string
  }): Promise<WatchStep> {
    const { lookBackHours = usualLookBackHours } = parseWatchInput(step.input)
    const until = Date.parse(step.until)
    const since = step.since === undefined ? until - lookBackHours * 3_600_000 : Date.parse(step.since)
    const published = await readPublished({ dataDir: deps.dataDir, testMode: deps.identity.mode === 'test' })
    const found: Missed[] = []
    let nights = 0
    for (const { description, withinMs } of await watchedSchedules()) {
      const over = await nightsOf({ description, from: since - withinMs, to: until - withinMs, until })
      nights += over.length
      for (const night of over) {
        const says = await saysOf({ night, description, published })
        const [at, by] = [night.at, night.at + withinMs].map((ms) => new Date(ms).toISOString())
        if (says !== undefined) found.push({ schedule: description.scheduleId, at: at!, by: by!, says })
      }
    }
    const missed = found.toSorted((a, b) => (a.at < b.at ? -1 : 1))
    // A look for a time that is over (a backfill) does not take the next one back there.
    const next = new Date(Math.max(until, since)).toISOString()
    return { until: next, nights, missed, notifies: kindsFor(deps.receivers) }
  }
}

/** The schedules of this task queue that are to be proven in time, as they are in Temporal now. */
async function watchedSchedules() {
  const { client } = Context.current()
  const { taskQueue } = activityInfo()
  const watched: { description: ScheduleDescription; withinMs: number }[] = []
  for await (const { scheduleId, memo } of client.schedule.list()) {
    if (!isOwn(memo, { taskQueue })) continue
    const description = await client.schedule.getHandle(scheduleId).describe()
    const { provenWithinMs: withinMs } = scheduleMemoOf(description.action)
    if (withinMs !== undefined) watched.push({ description, withinMs })
  }
  return watched
}

/** The times of a schedule after `from`, up to `to`, by Temporal's own reckoning: as it is set now. */
async function nightsOf(options: {
  description: ScheduleDescription
  from: number
  to: number
  until: number
}): Promise<Night[]> {
  const { description, to, until } = options
  const { scheduleId, action, spec, info } = description
  // A time before the schedule was made or changed was never one of it.
  const begun = (info.lastUpdatedAt ?? info.createdAt).getTime()
  const from = Math.max(options.from, begun)
  if (from >= to) return []
  const times = await timesOf({ scheduleId, from, to: until })
  const more = { workflowId: action.workflowId ?? `${scheduleId}-workflow`, jitterMs: spec.jitter ?? 0 }
  return times
    .map((at, index) => ({ at, next: times[index + 1] ?? Infinity, ...more }))
    .filter(({ at }) => at > from && at <= to)
}

async function timesOf(range: { scheduleId: string; from: number; to: number }): Promise<number[]> {
  const { scheduleId, to } = range
  const { client } = Context.current()
  const times: number[] = []
  // The server gives so many at once; each answer goes on after the last.
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
  // Seconds are a long there, and a number is taken for one.
  seconds: Math.floor(ms / 1000) as unknown as NonNullable<Timestamp['seconds']>,
  nanos: (ms % 1000) * 1e6,
})

const toMs = ({ seconds, nanos }: Timestamp): number => Number(seconds) * 1000 + (nanos ?? 0) / 1e6

/** What a night lacks, in a sentence; undefined where it lacks nothing. */
async function saysOf(options: {
  night: Night
  description: ScheduleDescription
  published: readonly PublishedNote[]
}): Promise<string | undefined> {
  const { night, description, published } = options
  const expected = toExpected(description.action.args?.[0])
  if (expected === undefined)
    return `its input is not one that an export takes, so put it back with \`connector schedule apply\`; ${await tellNight({ night, description })}`
  const lacks = await lacksOf({ night, expected, published })
  if (lacks.length === 0) return undefined
  const what = lacks.map(({ resource, destination }) => `${resource} to ${destination}`).join(', ')
  return `no proven export of ${what}; ${await tellNight({ night, description })}`
}
