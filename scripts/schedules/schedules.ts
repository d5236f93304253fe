import {
  type Client,
  type ScheduleDescription,
  ScheduleNotFoundError,
  type ScheduleOptions,
  type ScheduleOptionsAction,
} from '@temporalio/client'
import { isOwn, madeBy, type ScheduleMemo, scheduleMemoOf } from '../../core/schedules/memo.ts'
import { RefusedError } from '../terminal/failures.ts'
import { parseDuration } from '../../core/runs/inputs.ts'
import type { Definition } from './file.ts'
import { hashInput } from '../runs/jobs.ts'

export interface SchedulesPlace {
  client: Client
  taskQueue: string
}

/** Names of the schedules that `apply` created for this task queue. */
export async function ownSchedules({ client, taskQueue }: SchedulesPlace): Promise<string[]> {
  const names: string[] = []
  for await (const { scheduleId, memo } of client.schedule.list())
    if (isOwn(memo, { taskQueue })) names.push(scheduleId)
  return names.toSorted()
}

/** @throws {RefusedError} the schedule was not created by `apply` for this task queue */
export async function findSchedule({ client, taskQueue, name }: SchedulesPlace & { name: string }) {
  const handle = client.schedule.getHandle(name)
  try {
    const description = await handle.describe()
    if (isOwn(description.memo, { taskQueue })) return { handle, description }
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined
    throw error
  }
  throw new RefusedError(`A schedule ${name} exists that was not created for the task queue ${taskQueue}.`, {
    hint: 'Give yours another name.',
  })
}

export function describe({ workflow, cron, every, timezone, paused }: Definition): string {
  const times = every === undefined ? (cron ?? []).join('; ') : `every ${every}`
  const when = times === '' ? 'only when triggered' : every === undefined ? `${times} in ${timezone}` : times
  return `${workflow}, ${when}${paused ? ', paused' : ''}`
}

interface Named {
  name: string
  definition: Definition
  taskQueue: string
}

/** The file's check has accepted the text. */
const toMs = (text: string): number => parseDuration(text) ?? 0

/** Converts a schedule for Temporal, without its paused state. */
export function toTemporal({ name, definition, taskQueue }: Named) {
  const { workflow, input, cron, every, timezone, jitter, catchUp, pauseAfterFailures } = definition
  const { provenWithin, paused } = definition
  const schedule: ScheduleMemo = {
    pauseAfterFailures,
    // A schedule that only a person starts has no slot to miss.
    ...(provenWithin !== undefined && !paused && { provenWithinMs: toMs(provenWithin) }),
    definition: { ...definition },
  }
  return {
    spec: {
      ...(cron !== undefined && { cronExpressions: cron }),
      ...(every !== undefined && { intervals: [{ every: toMs(every) }] }),
      ...(jitter !== undefined && { jitter: toMs(jitter) }),
      timezone,
    },
    action: {
      type: 'startWorkflow',
      workflowType: workflow,
      // Temporal appends the scheduled time.
      workflowId: name,
      taskQueue,
      args: [input],
      memo: { schedule },
    } satisfies ScheduleOptionsAction,
    // A single failure must not stop a schedule: runs pause it themselves after several.
    policies: { overlap: 'SKIP', catchupWindow: toMs(catchUp), pauseOnFailure: false },
  } as const satisfies Omit<ScheduleOptions, 'scheduleId'>
}

export const ownerMemo = ({ taskQueue }: { taskQueue: string }) => ({ madeBy, taskQueue })

/**
 * A hash of the requested definition and of what Temporal stores for it. It changes with everything that a person
 * can change in the Temporal UI, except a pause; the schedule's memo holds the hash after the last `apply`.
 */
export function fingerprint({ description, ...named }: Named & { description: ScheduleDescription }): string {
  const { spec, action, policies, state } = description
  const { fingerprint: _, earlier: __, ...memo } = scheduleMemoOf(action)
  const kept = { spec, action: { ...action, memo }, policies, remainingActions: state.remainingActions }
  return hashInput({ wanted: toTemporal(named), kept })
}
