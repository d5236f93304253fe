import {
  type Client,
  ScheduleAlreadyRunning,
  type ScheduleDescription,
  ScheduleNotFoundError,
} from '@temporalio/client'
import type { Command } from 'commander'
import { isDeepStrictEqual } from 'node:util'
import { earlierSlots } from '../../worker/temporal-queries.ts'
import { openSession } from '../session/session.ts'
import { addExamples, callersPath, processSettings } from '../commands/options.ts'
import { confirm, type Terminal } from '../terminal/terminal.ts'
import { type ScheduleMemo, scheduleMemoOf } from '../../core/schedules/memo.ts'
import {
  describe,
  findSchedule,
  fingerprint,
  ownerMemo,
  ownSchedules,
  type SchedulesPlace,
  toTemporal,
} from './schedules.ts'
import { type Definition, readSchedulesFile } from './file.ts'
import { keyIdOf } from '../../worker/codec/payload-codec.ts'

const pausedByFile = 'Paused in the schedules file: trigger it, or remove `paused` from the file.'

export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('[file]', 'the schedules file', 'schedules.yaml')
    .option('--yes', 'do not ask on a terminal')
    .action(async (file: string, { yes = false }: { yes?: boolean }) => applyFile({ file, yes, terminal }))
  addExamples(command, 'inspect', {
    'schedule apply': 'show what schedules.yaml would change, ask, apply it',
  })
}

/** Makes the schedules in Temporal match the file, after a confirmation. */
async function applyFile(options: { file: string; yes: boolean; terminal: Terminal }): Promise<void> {
  const { file, yes, terminal } = options
  const settings = processSettings()
  const wanted = await readSchedulesFile(callersPath(file))
  const session = await openSession({ settings, terminal })
  try {
    const { client, identity } = session
    terminal.identity({ workspace: identity.workspace, testMode: identity.mode === 'test' })
    const place = { client, taskQueue: settings.taskQueue }
    const plan = await planChanges({ ...place, wanted, keyId: settings.payloadKeys[0]?.id })
    const changes = plan.changes.filter(({ action }) => action !== 'keep')
    const text = describePlan(plan)
    if (changes.length > 0)
      await confirm({
        terminal,
        yes,
        text,
        question: 'Apply this?',
        what: 'Changing schedules',
        declined: 'Nothing was applied.',
        hint: 'Add --yes.',
      })
    for (const change of changes) await apply({ ...place, change })
    const done = plan.changes.map(({ action, name, differences }) => ({
      action,
      name,
      ...(differences && { differences }),
    }))
    terminal.result({ document: { changes: done, warnings: plan.warnings }, text })
  } finally {
    await session.close()
  }
}

export async function apply(options: { client: Client; taskQueue: string; change: Change }): Promise<void> {
  const { client, taskQueue, change } = options
  const { action, name, definition } = change
  const handle = client.schedule.getHandle(name)
  if (definition === undefined)
    return await handle.delete().catch((error: unknown) => {
      // Temporal's list of schedules is slightly delayed, so one may already be gone.
      if (!(error instanceof ScheduleNotFoundError)) throw error
    })
  const named = { name, definition, taskQueue }
  const wanted = toTemporal(named)
  const { paused = definition.paused, note = '' } = change
  const state = { paused, note: paused && note === '' ? pausedByFile : note }
  let { schedule }: { schedule: ScheduleMemo } = wanted.action.memo
  if (action === 'update' || !(await create({ ...options, name, wanted, state }))) {
    const earlier = await earlierSlots({ client, description: await handle.describe(), now: Date.now() })
    schedule = { ...schedule, earlier }
    await handle.update(() => ({ ...wanted, action: { ...wanted.action, memo: { schedule } }, state }))
  }
  // Temporal stores its own form of what it was given.
  const kept = fingerprint({ ...named, description: await handle.describe() })
  const memo = { schedule: { ...schedule, fingerprint: kept } }
  await handle.update((present) => ({ ...wanted, action: { ...wanted.action, memo }, state: present.state }))
}

/**
 * False if another `apply` has created the schedule in the meantime.
 *
 * @throws {RefusedError} something else has created it
 */
async function create(of: {
  client: Client
  taskQueue: string
  name: string
  wanted: ReturnType<typeof toTemporal>
  state: { paused: boolean; note: string }
}): Promise<boolean> {
  const { client, taskQueue, name, wanted, state } = of
  try {
    await client.schedule.create({ scheduleId: name, memo: ownerMemo({ taskQueue }), ...wanted, state })
    return true
  } catch (error) {
    if (!(error instanceof ScheduleAlreadyRunning)) throw error
    await findSchedule({ client, taskQueue, name })
    return false
  }
}

const signs: Readonly<Record<Change['action'], string>> = { create: '+', update: '~', delete: '-', keep: '=' }

function describePlan({ changes, warnings }: Plan): string {
  const lines = changes.map(({ action, name, definition, differences }) => {
    const details = action === 'create' && definition ? [describe(definition)] : (differences ?? [])
    return `${signs[action]} ${name}${details.length === 0 ? '' : `: ${details.join('; ')}`}`
  })
  return [...lines, ...warnings.map((warning) => `! ${warning}`)].join('\n')
}

/** What `schedule apply` does to one schedule. */
interface Change {
  action: 'create' | 'update' | 'delete' | 'keep'
  name: string
  /** Absent of one to delete. */
  definition?: Definition
  /** Of one to update: how it differs from the file. */
  differences?: string[]
  /** Of one to update, which a person or failed runs may have paused. Default: as the file says. */
  paused?: boolean
  note?: string
}

interface Plan {
  changes: Change[]
  warnings: string[]
}

interface Place extends SchedulesPlace {
  /** The id of the key that encrypts inputs. */
  keyId?: string | undefined
}

/** The changes that make Temporal match the file, including the removal of schedules from an earlier file. */
async function planChanges(options: Place & { wanted: ReadonlyMap<string, Definition> }): Promise<Plan> {
  const { wanted, ...place } = options
  const plan: Plan = { changes: [], warnings: [] }
  for (const [name, definition] of wanted) {
    const found = await findSchedule({ ...place, name })
    if (found === undefined) plan.changes.push({ action: 'create', name, definition })
    else plan.changes.push(toChange({ ...place, name, definition, present: found.description }))
    const { paused, note } = found?.description.state ?? { paused: false }
    const staysPaused = paused && !definition.paused && !wasPausedByFile(found?.description)
    if (staysPaused) plan.warnings.push(`${name} stays paused: ${note ?? ''}`)
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
