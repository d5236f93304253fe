import { ScheduleAlreadyRunning, ScheduleNotFoundError, type Client } from '@temporalio/client'
import type { Command } from 'commander'
import { earlierSlots } from '../../worker/temporal-queries.ts'
import { openSession } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import { isYes, type Terminal } from '../terminal/terminal.ts'
import type { ScheduleMemo } from '../../core/schedules/memo.ts'
import { addExamples, callersPath } from '../commands/options.ts'
import { describe, findSchedule } from './find-schedules.ts'
import { planChanges, type Change, type Plan } from './plan-changes.ts'
import { readSchedulesFile } from './read-file.ts'
import { fingerprint, ownerMemo, toTemporal } from './to-temporal.ts'

const pausedByFile = 'Paused in the schedules file: start it with Trigger, or remove `paused` from the file.'

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
    if (changes.length > 0) await agree({ plan, terminal, yes })
    for (const change of changes) await apply({ ...place, change })
    const done = plan.changes.map(({ action, name, ...more }) => ({
      action,
      name,
      ...('differences' in more && { differences: more.differences }),
    }))
    terminal.result({ document: { changes: done, warnings: plan.warnings }, text: describePlan(plan) })
  } finally {
    await session.close()
  }
}

async function agree(options: { plan: Plan; terminal: Terminal; yes: boolean }): Promise<void> {
  const { plan, terminal, yes } = options
  if (yes) return
  terminal.note(describePlan(plan))
  if (!terminal.isInteractive) {
    throw new RefusedError('Changing schedules needs a confirmation, and this is not a terminal.', {
      hint: 'Nothing was applied. Add --yes.',
    })
  }
  const answer = await terminal.ask('Apply this? [y/N] ')
  if (!isYes(answer)) throw new RefusedError('Nothing was applied.')
}

export async function apply(options: { client: Client; taskQueue: string; change: Change }): Promise<void> {
  const { client, taskQueue, change } = options
  const { name } = change
  if (change.action === 'delete') return await remove(client, name)
  if (change.action === 'keep') return
  const named = { name, definition: change.definition, taskQueue }
  const wanted = toTemporal(named)
  const { paused, note } = change.action === 'create' ? { ...change.definition, note: '' } : change
  const state = { paused, note: paused && note === '' ? pausedByFile : note }
  const handle = client.schedule.getHandle(name)
  let { schedule }: { schedule: ScheduleMemo } = wanted.action.memo
  if (change.action === 'update' || !(await create({ ...options, name, wanted, state }))) {
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

async function remove(client: Client, name: string): Promise<void> {
  try {
    await client.schedule.getHandle(name).delete()
  } catch (error) {
    // Temporal's list of schedules is slightly delayed, so one may already be gone.
    if (!(error instanceof ScheduleNotFoundError)) throw error
  }
}

const signs: Readonly<Record<Change['action'], string>> = { create: '+', update: '~', delete: '-', keep: '=' }

function describePlan({ changes, warnings }: Plan): string {
  const lines = changes.map((change) => {
    const { action, name } = change
    const details =
      action === 'create'
        ? `: ${describe(change.definition)}`
        : action === 'update'
          ? `: ${change.differences.join('; ')}`
          : ''
    return `${signs[action]} ${name}${details}`
  })
  return [...lines, ...warnings.map((warning) => `! ${warning}`)].join('\n')
}
