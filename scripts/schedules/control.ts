import {
  type Client,
  type ScheduleDescription,
  WorkflowFailedError,
  WorkflowNotFoundError,
} from '@temporalio/client'
import type { Command } from 'commander'
import { setTimeout as sleep } from 'node:timers/promises'
import { scheduleMemoOf } from '../../core/schedules/memo.ts'
import type { Configure } from '../command-line.ts'
import { openClient } from '../session/session.ts'
import {
  addDecision,
  addExamples,
  decisionOf,
  type DecisionOptions,
  processSettings,
} from '../commands/options.ts'
import { RefusedError, toFailure } from '../terminal/failures.ts'
import { formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { confirm, type Terminal } from '../terminal/terminal.ts'
import type { Definition } from './file.ts'
import { describe, findSchedule, ownSchedules } from './schedules.ts'
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

export function configureList(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const settings = processSettings()
    await using client = await openClient({ settings, terminal })
    const place = { client, taskQueue: settings.taskQueue }
    const found = (await ownSchedules(place)).map(async (name) => {
      const one = await findSchedule({ ...place, name })
      return one === undefined ? [] : [await toListed({ client, name, ...one })]
    })
    const schedules = (await Promise.all(found)).flat()
    const rows = schedules.map(({ name, when, next, last, paused }) => [
      name,
      paused ? 'paused' : toTime(next),
      toTime(last?.startedAt ?? null),
      last === null ? '' : toWord(last),
      when,
    ])
    const head = ['schedule', 'next', 'last', 'ended', 'what']
    const notes = schedules.flatMap(({ name, paused, note, last }) => [
      ...(paused && note !== '' ? [`${name}: ${note}`] : []),
      ...(last !== null && last.verdict !== 'proven' && last.summary ? [`${name}: ${last.summary}`] : []),
    ])
    const none = `No schedules. Create them with \`${connector`schedule apply`}\`.`
    const listed = [formatTable({ head, rows }), ...(notes.length > 0 ? [notes.join('\n')] : [])].join('\n\n')
    terminal.result({ document: { schedules }, text: rows.length === 0 ? none : listed })
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

const toWord = ({ verdict, status }: LastRun): string =>
  verdict === 'dryRun' ? 'dry run' : (verdict ?? status)

const toTime = (at: string | null): string => (at === null ? '' : formatLocalTime(at, 'minutes'))

type Found = NonNullable<Awaited<ReturnType<typeof findSchedule>>>

/** A command that acts on one schedule. */
interface Control<Options> {
  command: Command
  terminal: Terminal
  act: (found: Found, options: Options & { name: string }) => Promise<{ text: string; run?: string }>
}

function configureControl<Options>({ command, terminal, act }: Control<Options>): void {
  command.argument('<name>', 'the schedule').action(async (name: string, options: Options) => {
    const settings = processSettings()
    await using client = await openClient({ settings, terminal })
    const found = await findSchedule({ client, taskQueue: settings.taskQueue, name })
    if (found === undefined)
      throw new RefusedError(`There is no schedule ${name}.`, {
        hint: `\`${connector`schedule list`}\` lists them.`,
      })
    const { text, ...more } = await act(found, { ...options, name })
    terminal.result({ document: { schedule: name, message: text, ...more }, text })
  })
}

/** Pauses or unpauses a schedule, with the decision as its note. */
const switchCommand =
  (verb: 'pause' | 'unpause'): Configure =>
  (command, terminal) => {
    addDecision(command)
    configureControl<DecisionOptions>({
      command,
      terminal,
      act: async ({ handle }, { name, ...options }) => {
        const { by, why } = decisionOf(options)
        await handle[verb](`${verb === 'pause' ? 'Paused' : 'Unpaused'} by ${by}: ${why}`)
        if (verb === 'pause') return { text: `${name} is paused.` }
        const [next] = (await handle.describe()).info.nextActionTimes
        const when = next === undefined ? '' : `; next run at ${formatLocalTime(next)}`
        return { text: `${name} is active again${when}.` }
      },
    })
    addExamples(command, 'inspect', {
      [`schedule ${verb} export-nightly --why "the service is migrated tonight"`]:
        verb === 'pause' ? 'start no runs until it is unpaused' : 'start runs at their times again',
    })
  }

export const configurePause = switchCommand('pause')
export const configureUnpause = switchCommand('unpause')

const startedWithinMs = 10_000

export function configureTrigger(command: Command, terminal: Terminal): void {
  configureControl<object>({
    command,
    terminal,
    act: async ({ handle, description }, { name }) => {
      const [running] = description.info.runningActions
      if (running !== undefined)
        throw new RefusedError(
          `The run ${running.workflow.workflowId} of ${name} is still active, so no other was started.`,
          {
            hint: `Follow it with: ${connector`run watch ${running.workflow.workflowId}`}`,
          },
        )
      const before = description.info.numActionsTaken
      await handle.trigger('SKIP')
      for (const until = performance.now() + startedWithinMs; performance.now() < until; await sleep(50)) {
        const { info } = await handle.describe()
        const run = info.recentActions.at(-1)?.action.workflow.workflowId
        if (info.numActionsTaken > before && run !== undefined)
          return { text: `Started ${run}. Follow it with: ${connector`run watch ${run}`}`, run }
      }
      throw new Error(
        `Temporal accepted the trigger of ${name} but started no run. Check the schedule in the Temporal UI.`,
      )
    },
  })
}

export function configureDelete(command: Command, terminal: Terminal): void {
  command.option('--yes', 'do not ask on a terminal')
  configureControl<{ yes?: boolean }>({
    command,
    terminal,
    act: async ({ handle }, { name, yes = false }) => {
      await confirm({
        terminal,
        yes,
        question: `Delete the schedule ${name}?`,
        what: `Deleting ${name}`,
        declined: 'Nothing was deleted.',
        hint: 'Add --yes.',
      })
      await handle.delete()
      return { text: `${name} is deleted.` }
    },
  })
}
