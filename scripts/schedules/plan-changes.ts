import { ScheduleNotFoundError, type Client, type ScheduleDescription } from '@temporalio/client'
import { isDeepStrictEqual } from 'node:util'
import { isOwn, scheduleMemoOf } from '../../core/schedules/memo.ts'
import { RefusedError } from '../terminal/failures.ts'
import { clockWarnings } from './clock-changes.ts'
import type { Definition } from './definition.ts'
import { presentEffect, wantedEffect } from './to-temporal.ts'

/** What `schedule apply` does to one schedule. */
export type Change =
  | { what: 'create'; name: string; definition: Definition }
  | { what: 'update'; name: string; definition: Definition; says: string[]; paused: boolean; note: string }
  | { what: 'delete'; name: string }
  | { what: 'keep'; name: string; definition: Definition }

export interface Plan {
  changes: Change[]
  /** What somebody should know about them. */
  warnings: string[]
}

interface Place {
  client: Client
  taskQueue: string
}

/** Every schedule of this task queue that a file has made. */
export async function ownSchedules({ client, taskQueue }: Place): Promise<string[]> {
  const names: string[] = []
  for await (const { scheduleId, memo } of client.schedule.list())
    if (isOwn(memo, { taskQueue })) names.push(scheduleId)
  return names.toSorted()
}

/** A schedule by name, if this task queue's file has made it; refuses one of somebody else. */
export async function findSchedule({ client, taskQueue, name }: Place & { name: string }) {
  const handle = client.schedule.getHandle(name)
  try {
    const description = await handle.describe()
    if (isOwn(description.memo, { taskQueue })) return { handle, description }
  } catch (error) {
    if (error instanceof ScheduleNotFoundError) return undefined
    throw error
  }
  throw new RefusedError(
    `There is a schedule ${name} already that was not made for the task queue ${taskQueue}.`,
    {
      hint: 'Give yours another name; what others made is left alone.',
    },
  )
}

/** What has to change so that Temporal has what the file says, and nothing that an earlier file said. */
export async function planChanges(
  options: Place & { wanted: ReadonlyMap<string, Definition> },
): Promise<Plan> {
  const { wanted, ...place } = options
  const plan: Plan = { changes: [], warnings: [] }
  for (const [name, definition] of wanted) {
    const found = await findSchedule({ ...place, name })
    if (found === undefined) plan.changes.push({ what: 'create', name, definition })
    else plan.changes.push(toChange({ ...place, name, definition, present: found.description }))
    const { paused, note } = found?.description.state ?? { paused: false }
    const staysPaused = paused && !definition.paused && !wasPausedByFile(found?.description)
    if (staysPaused) plan.warnings.push(`${name} stays paused: ${note ?? ''}`)
    plan.warnings.push(...warningsOf(name, definition))
  }
  if (!isWatched(wanted))
    plan.warnings.push(
      'provenWithin is watched by nobody: add a schedule of watchSchedules, as docs/schedules.example.yaml has one',
    )
  for (const name of await ownSchedules(place))
    if (!wanted.has(name)) plan.changes.push({ what: 'delete', name })
  return plan
}

/** Whether somebody looks where a proven export is expected in time. */
function isWatched(wanted: ReadonlyMap<string, Definition>): boolean {
  const running = [...wanted.values()].filter(({ paused }) => !paused)
  return (
    running.every(({ provenWithin }) => provenWithin === undefined) ||
    running.some(({ workflow }) => workflow === 'watchSchedules')
  )
}

const definitionOf = (present: ScheduleDescription | undefined): Partial<Definition> =>
  present === undefined ? {} : (scheduleMemoOf(present.action).definition ?? {})

const wasPausedByFile = (present: ScheduleDescription | undefined) => definitionOf(present).paused === true

function warningsOf(name: string, { cron = [], timezone }: Definition): string[] {
  const now = Date.now()
  return cron
    .flatMap((text) => clockWarnings({ cron: text, timezone, now }))
    .map((says) => `${name}: ${says}`)
}

function toChange(
  of: Omit<Place, 'client'> & { name: string; definition: Definition; present: ScheduleDescription },
): Change {
  const { name, definition, present, taskQueue } = of
  const says = differences(definitionOf(present), definition)
  const memo = scheduleMemoOf(present.action)
  const changedElsewhere = !isDeepStrictEqual(
    wantedEffect({ name, definition, taskQueue }),
    presentEffect(present, memo),
  )
  // A person's pause, or that after failures, is not undone by a file that never spoke of it.
  const paused = definition.paused || (present.state.paused && !wasPausedByFile(present))
  if (says.length === 0 && changedElsewhere) says.push('was changed outside the file; back to what it says')
  if (says.length === 0 && paused && !present.state.paused) says.push('paused: false → true')
  if (says.length === 0) return { what: 'keep', name, definition }
  const note = paused ? (present.state.note ?? '') : ''
  return { what: 'update', name, definition, says, paused, note }
}

/** Field by field, as the file has them. */
function differences(before: Partial<Definition>, after: Definition): string[] {
  const names = [...new Set([...Object.keys(before), ...Object.keys(after)])] as (keyof Definition)[]
  return names
    .filter((name) => !isDeepStrictEqual(before[name], after[name]))
    .map((name) => `${name}: ${show(before[name])} → ${show(after[name])}`)
}

function show(value: unknown): string {
  if (value === undefined) return 'none'
  if (typeof value === 'string') return value
  return Array.isArray(value) && value.length === 1 ? String(value[0]) : JSON.stringify(value)
}
