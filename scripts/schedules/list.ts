import {
  WorkflowFailedError,
  WorkflowNotFoundError,
  type Client,
  type ScheduleDescription,
} from '@temporalio/client'
import type { Command } from 'commander'
import { scheduleMemoOf } from '../../core/schedules/memo.ts'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { toFailure } from '../terminal/failures.ts'
import { formatTable } from '../../core/runs/view/format.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { Definition } from './definition.ts'
import { describe, findSchedule, ownSchedules } from './find-schedules.ts'
import { connector } from '../../core/runs/view/shell.ts'

interface LastRun {
  run: string
  startedAt: string
  /** Temporal's status. */
  status: string
  /** From the run's own report. */
  verdict: string | null
  summary: string | null
}

export function configure(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const settings = processSettings()
    await using client = await openClient({ settings, terminal })
    const place = { client, taskQueue: settings.taskQueue }
    const listed = (await ownSchedules(place)).map(async (name) => {
      const found = await findSchedule({ ...place, name })
      return found === undefined ? [] : [await toListed({ client, name, ...found })]
    })
    const schedules = (await Promise.all(listed)).flat()
    const rows = schedules.map(({ name, when, next, last, paused, note, timezone }) => [
      name,
      when,
      paused ? 'paused' : toLocal(next, timezone),
      toLocal(last?.startedAt ?? null, timezone),
      last === null ? '' : (last.verdict ?? last.status),
      [paused ? note : '', last?.summary ?? ''].filter((text) => text !== '').join(' | '),
    ])
    const head = ['schedule', 'what', 'next', 'last', 'ended', '']
    const none = `No schedules. Create them with \`${connector`schedule apply`}\`.`
    terminal.result({
      document: { schedules },
      text: rows.length === 0 ? none : formatTable({ head, rows }),
    })
  })
}

async function toListed(of: { client: Client; name: string; description: ScheduleDescription }) {
  const { client, name, description } = of
  const { state, info, spec, action } = description
  const definition = scheduleMemoOf(action).definition as unknown as Definition | undefined
  return {
    name,
    workflow: action.workflowType,
    when: definition === undefined ? action.workflowType : describe({ ...definition, paused: false }),
    timezone: spec.timezone ?? 'UTC',
    paused: state.paused,
    note: state.note ?? '',
    next: info.nextActionTimes[0]?.toISOString() ?? null,
    last: await lastOf({ client, description }),
  }
}

async function lastOf(of: { client: Client; description: ScheduleDescription }): Promise<LastRun | null> {
  const last = of.description.info.recentActions.at(-1)
  if (last === undefined) return null
  const run = last.action.workflow.workflowId
  const known = { run, startedAt: last.takenAt.toISOString(), status: 'forgotten' }
  const handle = of.client.workflow.getHandle(run)
  try {
    const { status } = await handle.describe()
    known.status = status.name.toLowerCase().replaceAll('_', ' ')
    if (status.name === 'RUNNING') return { ...known, verdict: null, summary: null }
    const result = (await handle.result()) as { verdict?: string; summary?: string } | null
    return { ...known, verdict: result?.verdict ?? null, summary: result?.summary ?? null }
  } catch (error) {
    if (error instanceof WorkflowFailedError)
      return { ...known, verdict: null, summary: toFailure(error).message }
    if (error instanceof WorkflowNotFoundError) return { ...known, verdict: null, summary: null }
    throw error
  }
}

/** For example 2026-11-22 02:30, in the schedule's own time zone. */
function toLocal(at: string | null, timeZone: string): string {
  if (at === null) return ''
  const style = { dateStyle: 'short', timeStyle: 'short', timeZone } as const
  return new Intl.DateTimeFormat('sv-SE', style).format(new Date(at))
}
