import { ScheduleNotFoundError, type Client } from '@temporalio/client'
import { isOwn } from '../../core/schedules/memo.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Definition } from './definition.ts'

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
