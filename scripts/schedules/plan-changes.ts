import type { ScheduleDescription } from '@temporalio/client'
import { isDeepStrictEqual } from 'node:util'
import { scheduleMemoOf } from '../../core/schedules/memo.ts'
import { keyIdOf } from '../../worker/codec/payload-codec.ts'
import { clockWarnings } from './cron.ts'
import type { Definition } from './definition.ts'
import { findSchedule, ownSchedules, type SchedulesPlace } from './find-schedules.ts'
import { fingerprint } from './to-temporal.ts'

/** What `schedule apply` does to one schedule. */
export type Change =
  | { action: 'create'; name: string; definition: Definition }
  | {
      action: 'update'
      name: string
      definition: Definition
      differences: string[]
      paused: boolean
      note: string
    }
  | { action: 'delete'; name: string }
  | { action: 'keep'; name: string; definition: Definition }

export interface Plan {
  changes: Change[]
  warnings: string[]
}

interface Place extends SchedulesPlace {
  /** The id of the key that encrypts inputs. */
  keyId?: string | undefined
}

/** The changes that make Temporal match the file, including the removal of schedules from an earlier file. */
export async function planChanges(
  options: Place & { wanted: ReadonlyMap<string, Definition> },
): Promise<Plan> {
  const { wanted, ...place } = options
  const plan: Plan = { changes: [], warnings: [] }
  for (const [name, definition] of wanted) {
    const found = await findSchedule({ ...place, name })
    if (found === undefined) plan.changes.push({ action: 'create', name, definition })
    else plan.changes.push(toChange({ ...place, name, definition, present: found.description }))
    const { paused, note } = found?.description.state ?? { paused: false }
    const staysPaused = paused && !definition.paused && !wasPausedByFile(found?.description)
    if (staysPaused) plan.warnings.push(`${name} stays paused: ${note ?? ''}`)
    plan.warnings.push(...warningsOf(name, definition))
  }
  if (!isWatched(wanted))
    plan.warnings.push(
      'nothing watches provenWithin: add a schedule of watchSchedules, as in docs/schedules.example.yaml',
    )
  for (const name of await ownSchedules(place))
    if (!wanted.has(name)) plan.changes.push({ action: 'delete', name })
  return plan
}

/** Whether the watch is scheduled if any active schedule has `provenWithin`. */
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
    .map((warning) => `${name}: ${warning}`)
}

function toChange(
  of: Omit<Place, 'client'> & { name: string; definition: Definition; present: ScheduleDescription },
): Change {
  const { name, definition, present, taskQueue, keyId } = of
  const differences = compare(definitionOf(present), definition)
  const isAsApplied =
    scheduleMemoOf(present.action).fingerprint ===
    fingerprint({ name, definition, taskQueue, description: present })
  // The file never undoes a pause by a person or after failed runs.
  const paused = definition.paused || (present.state.paused && !wasPausedByFile(present))
  if (differences.length === 0 && !isAsApplied) differences.push('changed outside the file; restored')
  const [input] = present.raw.schedule?.action?.startWorkflow?.input?.payloads ?? []
  if (keyIdOf(input ?? {}) !== keyId) differences.push('encrypted with the key in use')
  if (differences.length === 0 && paused && !present.state.paused) differences.push('paused: false → true')
  if (differences.length === 0) return { action: 'keep', name, definition }
  const note = paused ? (present.state.note ?? '') : ''
  return { action: 'update', name, definition, differences, paused, note }
}

/** The fields that differ, named as in the file. */
function compare(before: Partial<Definition>, after: Definition): string[] {
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
