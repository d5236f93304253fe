import type { Client, ScheduleDescription } from '@temporalio/client'
import { WorkflowNotFoundError } from '@temporalio/common'
import type { ExportReport } from '../../core/exports/report.ts'
import { parseWatchInput } from '../../core/schedules/inputs.ts'
import type { Publication } from '../../core/state/publications.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import {
  changedAt,
  type MissedSlot,
  missingExports,
  type ScheduleSlot,
  toExpected,
} from '../../core/schedules/slots.ts'
import { kindsFor, type NotificationKind } from '../../core/notifications/notification.ts'
import { isOwn, scheduleMemoOf } from '../../core/schedules/memo.ts'
import { connector } from '../../core/runs/view/shell.ts'

const defaultLookBackHours = 24

export interface WatchStep {
  /** The start of the next check (ISO 8601). */
  until: string
  /** The number of slots checked. */
  slots: number
  missed: MissedSlot[]
  notifies: NotificationKind[]
}

/** Finds the slots whose deadline passed between two moments and that have no proven export. */
export function createFindMissed(deps: ActivityDeps) {
  return async function findMissed(
    context: StepContext,
    step: {
      input: unknown
      /** The end of the last check; undefined for the first check. */
      since: string | undefined
      until: string
    },
  ): Promise<WatchStep> {
    const { lookBackHours = defaultLookBackHours } = parseWatchInput(step.input)
    const until = Date.parse(step.until)
    const since = step.since === undefined ? until - lookBackHours * 3_600_000 : Date.parse(step.since)
    const published = await deps.state.publications.all({ testMode: deps.identity.mode === 'test' })
    const found: MissedSlot[] = []
    let slots = 0
    for (const { description, withinMs } of await watchedSchedules(context)) {
      const due = await dueSlots({ ...deps, client: context.client, description, withinMs, since, until })
      slots += due.length
      for (const slot of due) {
        const { client } = context
        const reason = await reasonMissed({
          client,
          slot,
          description,
          published,
          files: deps.files,
          dataDir: deps.dataDir,
        })
        const [at, by] = [slot.at, slot.at + slot.withinMs].map((ms) => new Date(ms).toISOString())
        if (reason !== undefined) found.push({ schedule: description.scheduleId, at: at!, by: by!, reason })
      }
    }
    const missed = found.toSorted((a, b) => (a.at < b.at ? -1 : 1))
    // A check of a past time (a backfill) does not move the start of the next check back.
    const next = new Date(Math.max(until, since)).toISOString()
    return { until: next, slots, missed, notifies: kindsFor(deps.channels) }
  }
}

/** The schedules of this task queue with `provenWithin`, as Temporal currently has them. */
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

/** A slot with the input that its runs had at that time. */
interface DueSlot extends ScheduleSlot {
  withinMs: number
  input: unknown
}

/**
 * The slots of a schedule whose deadline passed after `since`, up to `until`: those of its current times, as
 * Temporal calculates them, and those from before its last change, from its memo.
 */
async function dueSlots(options: {
  scheduleTimes: ActivityDeps['scheduleTimes']
  client: Client
  description: ScheduleDescription
  withinMs: number
  since: number
  until: number
}): Promise<DueSlot[]> {
  const { description, withinMs, since, until, client, scheduleTimes } = options
  const { scheduleId, action, spec } = description
  const { earlier = [] } = scheduleMemoOf(action)
  // The current times apply only from the last change of the schedule on.
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

/** One sentence on what is missing; undefined if every expected list has a proven export. */
async function reasonMissed(options: {
  client: Client
  slot: DueSlot
  description: ScheduleDescription
  published: readonly Publication[]
  files: ActivityDeps['files']
  dataDir: string
}): Promise<string | undefined> {
  const { client, slot, description, published, files, dataDir } = options
  const expected = toExpected(slot.input, dataDir)
  if (expected === undefined)
    return `its input is not valid for an export, so restore it with \`${connector`schedule apply`}\`; ${await explainMissedSlot({ client, slot, description })}`
  const missing = await missingExports({ slot, expected, published, files })
  if (missing.length === 0) return undefined
  const lists = missing.map(({ resource, destination }) => `${resource} to ${destination}`).join(', ')
  return `no proven export of ${lists}; ${await explainMissedSlot({ client, slot, description })}`
}

/** Explains to a person what happened to the run that was due in this slot, as far as Temporal still knows. */
async function explainMissedSlot(options: {
  client: Client
  slot: ScheduleSlot
  description: ScheduleDescription
}): Promise<string> {
  const { client, slot, description } = options
  const { recentActions } = description.info
  const own = recentActions.find(({ scheduledAt }) => Math.abs(scheduledAt.getTime() - slot.at) < 1)
  if (own !== undefined) return await explainRun(client, own.action.workflow.workflowId)
  const { paused, note = '' } = description.state
  if (paused) return `the schedule is paused${note === '' ? '' : `: ${note}`}`
  const oldest = recentActions[0]?.scheduledAt.getTime()
  const isForgotten = oldest !== undefined && slot.at < oldest
  return isForgotten
    ? 'its run is too old: Temporal no longer has it'
    : 'no run was started for it: the previous run was still active, the schedule was paused then, or Temporal was down for longer than `catchUp`'
}

async function explainRun(client: Client, workflowId: string): Promise<string> {
  const handle = client.workflow.getHandle(workflowId)
  try {
    const { status } = await handle.describe()
    const ended = status.name.toLowerCase().replaceAll('_', ' ')
    if (status.name === 'RUNNING') return `its run ${workflowId} is still active`
    if (status.name !== 'COMPLETED') return `its run ${workflowId} is ${ended}`
    const { verdict, summary } = (await handle.result()) as ExportReport
    return `its run ${workflowId} ended ${verdict}: ${summary}`
  } catch (error) {
    if (error instanceof WorkflowNotFoundError) return `Temporal no longer has its run ${workflowId}`
    throw error
  }
}
