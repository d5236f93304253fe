import { ScheduleAlreadyRunning, ScheduleNotFoundError, type Client } from '@temporalio/client'
import type { Command } from 'commander'
import { resolve } from 'node:path'
import { earlierSlots } from '../../worker/run-inputs.ts'
import { openSession } from '../session.ts'
import { processSettings } from '../settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Definition } from './definition.ts'
import { findSchedule, planChanges, type Change, type Plan } from './plan-changes.ts'
import { readSchedulesFile } from './read-file.ts'
import { ownerMemo, toTemporal } from './to-temporal.ts'

const pausedByFile = 'Paused in the schedules file: start it with Trigger, or take `paused` out of the file.'

export function configureApply(command: Command, terminal: Terminal): void {
  command
    .description('make Temporal have the schedules of a file, and none that an earlier file had')
    .argument('[file]', 'the schedules', 'schedules.yaml')
    .option('--yes', 'without being asked')
    .action(async (file: string, { yes = false }: { yes?: boolean }) => {
      const settings = processSettings()
      const wanted = await readSchedulesFile(resolve(process.env['INIT_CWD'] ?? process.cwd(), file))
      const session = await openSession({ settings, terminal })
      try {
        const { client, identity } = session
        terminal.identity({ workspace: identity.workspace, testMode: identity.mode === 'test' })
        const place = { client, taskQueue: settings.taskQueue }
        const plan = await planChanges({ ...place, wanted })
        const changes = plan.changes.filter(({ what }) => what !== 'keep')
        if (changes.length > 0) await agree({ plan, terminal, yes })
        for (const change of changes) await apply({ ...place, change })
        tell({ plan, terminal })
      } finally {
        await session.close()
      }
    })
}

async function agree({
  plan,
  terminal,
  yes,
}: {
  plan: Plan
  terminal: Terminal
  yes: boolean
}): Promise<void> {
  if (yes) return
  terminal.note(describePlan(plan))
  if (!terminal.isInteractive) {
    throw new RefusedError('There is nobody to ask whether to change the schedules; nothing was applied.', {
      hint: 'Add --yes.',
    })
  }
  const answer = await terminal.ask('Apply this? [y/N] ')
  if (!/^(y|yes|s|si|sí)$/i.test(answer)) throw new RefusedError('Nothing was applied.')
}

export async function apply(options: { client: Client; taskQueue: string; change: Change }): Promise<void> {
  const { client, taskQueue, change } = options
  const { name } = change
  if (change.what === 'delete') return await remove(client, name)
  if (change.what === 'keep') return
  const wanted = toTemporal({ name, definition: change.definition, taskQueue })
  const { paused, note } = change.what === 'create' ? { ...change.definition, note: '' } : change
  const state = { paused, note: paused && note === '' ? pausedByFile : note }
  if (change.what === 'create' && (await create({ ...options, name, wanted, state }))) return
  const handle = client.schedule.getHandle(name)
  const earlier = await earlierSlots({ client, description: await handle.describe(), now: Date.now() })
  const { action } = wanted
  const memo = { schedule: { ...action.memo.schedule, earlier } }
  await handle.update(() => ({ ...wanted, action: { ...action, memo }, state }))
}

/** False where another `apply` has made it meanwhile. @throws {RefusedError} where somebody else has */
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
    // The list of them is a moment behind.
    if (!(error instanceof ScheduleNotFoundError)) throw error
  }
}

function tell({ plan, terminal }: { plan: Plan; terminal: Terminal }): void {
  const changes = plan.changes.map(({ what, name, ...more }) => ({
    what,
    name,
    ...('says' in more && { says: more.says }),
  }))
  terminal.result({ document: { changes, warnings: plan.warnings }, text: describePlan(plan) })
}

const signs: Readonly<Record<Change['what'], string>> = { create: '+', update: '~', delete: '-', keep: '=' }

function describePlan({ changes, warnings }: Plan): string {
  const lines = changes.map((change) => {
    const { what, name } = change
    if (what === 'create') return `${signs[what]} ${name}: ${describe(change.definition)}`
    return `${signs[what]} ${name}${what === 'update' ? `: ${change.says.join('; ')}` : ''}`
  })
  return [...lines, ...warnings.map((says) => `! ${says}`)].join('\n')
}

export function describe({ workflow, cron, every, timezone, paused }: Definition): string {
  const times = every === undefined ? (cron ?? []).join('; ') : `every ${every}`
  const when =
    times === '' ? 'when somebody triggers it' : every === undefined ? `${times} in ${timezone}` : times
  return `${workflow}, ${when}${paused ? ', paused' : ''}`
}
