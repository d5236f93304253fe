import type { Missed } from '../../core/schedules/slots.ts'
import type { Client, ScheduleDescription } from '@temporalio/client'
import { parseWatchInput } from '../../core/schedules/watch-input.ts'
import { readPublished, type PublishedNote } from '../../core/exports/publication-log.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import { toExpected } from '../../core/schedules/expected-exports.ts'
import { changedAt, lacksOf, type Night } from '../../core/schedules/slots.ts'
import { kindsFor, type NotificationKind } from '../../core/notifications/notification.ts'
import { isOwn, scheduleMemoOf } from '../../core/schedules/memo.ts'
import { tellNight } from './explain-missed-slot.ts'

const usualLookBackHours = 24

export interface WatchStep {
  /** The next look begins here. */
  until: string
  /** How many nights were looked at. */
  nights: number
  missed: Missed[]
  notifies: NotificationKind[]
}

/** Finds the nights whose time to be proven ended between two moments, and that have no proven export. */
export function createFindMissed(deps: ActivityDeps) {
  return async function findMissed(
    context: StepContext,
    step: {
      input: unknown
      /** Where the last look ended; undefined at the first. */
      since: string | undefined
      until: string
    },
  ): Promise<WatchStep> {
    const { lookBackHours = usualLookBackHours } = parseWatchInput(step.input)
    const until = Date.parse(step.until)
    const since = step.since === undefined ? until - lookBackHours * 3_600_000 : Date.parse(step.since)
    const published = await readPublished({ dataDir: deps.dataDir, testMode: deps.identity.mode === 'test' })
    const found: Missed[] = []
    let nights = 0
    for (const { description, withinMs } of await watchedSchedules(context)) {
      const over = await nightsOf({ ...deps, client: context.client, description, withinMs, since, until })
      nights += over.length
      for (const night of over) {
        const says = await saysOf({ client: context.client, night, description, published })
        const [at, by] = [night.at, night.at + night.withinMs].map((ms) => new Date(ms).toISOString())
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
async function watchedSchedules({ client, taskQueue }: StepContext) {
  const watched: { description: ScheduleDescription; withinMs: number }[] = []
  for await (const { scheduleId, memo } of client.schedule.list()) {
    if (!isOwn(memo, { taskQueue })) continue
    const description = await client.schedule.getHandle(scheduleId).describe()
    const { provenWithinMs: withinMs } = scheduleMemoOf(description.action)
    if (withinMs !== undefined) watched.push({ description, withinMs })
  }
  return watched
}

/** A night, and what its runs were given at that time. */
interface DueNight extends Night {
  withinMs: number
  input: unknown
}

/**
 * The nights of a schedule whose time to be proven ended after `since`, up to `until`: those of its present times, by
 * Temporal's own reckoning, and those that it had before it was last changed, by its memo.
 */
async function nightsOf(options: {
  scheduleTimes: ActivityDeps['scheduleTimes']
  client: Client
  description: ScheduleDescription
  withinMs: number
  since: number
  until: number
}): Promise<DueNight[]> {
  const { description, withinMs, since, until, client, scheduleTimes } = options
  const { scheduleId, action, spec } = description
  const { earlier = [] } = scheduleMemoOf(action)
  // A time before the schedule was made or changed was never one of its present times.
  const from = Math.max(since - withinMs, changedAt(description))
  const times = from >= until ? [] : await scheduleTimes({ client, scheduleId, from, to: until })
  const present = { times, provenWithinMs: withinMs, jitterMs: spec.jitter ?? 0, input: action.args?.[0] }
  const workflowId = action.workflowId ?? `${scheduleId}-workflow`
  return [...earlier, present]
    .flatMap(({ times, provenWithinMs, jitterMs, input }) =>
      times.map((at) => ({ at, withinMs: provenWithinMs, jitterMs, input, workflowId })),
    )
    .map((slot, index, all) => ({ ...slot, next: all[index + 1]?.at ?? Infinity }))
    .filter(({ at, withinMs }) => at + withinMs > since && at + withinMs <= until)
}

/** What a night lacks, in a sentence; undefined where it lacks nothing. */
async function saysOf(options: {
  client: Client
  night: DueNight
  description: ScheduleDescription
  published: readonly PublishedNote[]
}): Promise<string | undefined> {
  const { client, night, description, published } = options
  const expected = toExpected(night.input)
  if (expected === undefined)
    return `its input is not one that an export takes, so put it back with \`connector schedule apply\`; ${await tellNight({ client, night, description })}`
  const lacks = await lacksOf({ night, expected, published })
  if (lacks.length === 0) return undefined
  const what = lacks.map(({ resource, destination }) => `${resource} to ${destination}`).join(', ')
  return `no proven export of ${what}; ${await tellNight({ client, night, description })}`
}
