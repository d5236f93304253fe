import type { Command } from 'commander'
import { setTimeout as sleep } from 'node:timers/promises'
import { addDecision, addExamples, decisionOf, type DecisionOptions } from '../commands/options.ts'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import { isYes, type Terminal } from '../terminal/terminal.ts'
import { findSchedule } from './find-schedules.ts'
import { formatLocalTime } from '../../core/runs/view/format.ts'
import { connector } from '../../core/runs/view/shell.ts'

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

export function configurePause(command: Command, terminal: Terminal): void {
  addDecision(command)
  configureControl<DecisionOptions>({
    command,
    terminal,
    act: async ({ handle }, { name, ...options }) => {
      const { by, why } = decisionOf(options)
      await handle.pause(`Paused by ${by}: ${why}`)
      return { text: `${name} is paused.` }
    },
  })
  addExamples(command, 'inspect', {
    'schedule pause export-nightly --why "the service is migrated tonight"':
      'start no runs until it is unpaused',
  })
}

export function configureUnpause(command: Command, terminal: Terminal): void {
  addDecision(command)
  configureControl<DecisionOptions>({
    command,
    terminal,
    act: async ({ handle }, { name, ...options }) => {
      const { by, why } = decisionOf(options)
      await handle.unpause(`Unpaused by ${by}: ${why}`)
      const [next] = (await handle.describe()).info.nextActionTimes
      return {
        text: `${name} is active again${next === undefined ? '' : `; next run at ${formatLocalTime(next)}`}.`,
      }
    },
  })
}

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
      if (!yes) {
        if (!terminal.isInteractive)
          throw new RefusedError(`Deleting ${name} needs a confirmation, and this is not a terminal.`, {
            hint: 'Add --yes.',
          })
        const answer = await terminal.ask(`Delete the schedule ${name}? [y/N] `)
        if (!isYes(answer)) throw new RefusedError('Nothing was deleted.')
      }
      await handle.delete()
      return { text: `${name} is deleted.` }
    },
  })
}
