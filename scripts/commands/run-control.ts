import { WorkflowNotFoundError } from '@temporalio/client'
import type { Command } from 'commander'
import { z } from 'zod'
import { idRule, isId } from '../../core/imports/read-ids.ts'
import { importLimits } from '../../core/imports/input.ts'
import { connector } from '../../core/runs/view/shell.ts'
import type { Configure } from '../command-line.ts'
import { noActiveRun, resolveInRun, updateRun } from '../runs/update-run.ts'
import { openClient } from '../session/session.ts'
import {
  addDecision,
  addExamples,
  addInputOptions,
  addOtherFields,
  decisionOf,
  type DecisionOptions,
  inputOf,
  processSettings,
} from './options.ts'
import { UsageError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

const addRun = (command: Command): Command => command.argument('<run>', 'workflow id of the run')

/** A command that sends one signal to a run; `answer` is printed after the run's name. */
const signalCommand =
  (signal: 'pause' | 'unpause' | 'stop', answer: string, meaning: string): Configure =>
  (command, terminal) => {
    addRun(command).action(async (run: string) => {
      await using client = await openClient({ settings: processSettings(), terminal })
      try {
        await client.workflow.getHandle(run).signal(signal)
      } catch (error) {
        if (!(error instanceof WorkflowNotFoundError)) throw error
        throw noActiveRun(run)
      }
      terminal.result({ document: { run, signal }, text: `${run} ${answer}` })
    })
    addExamples(command, 'inspect', { [`run ${signal} export-all-1f0c2b7a90`]: meaning })
  }

export const configurePause = signalCommand(
  'pause',
  'pauses after the page or row in progress.',
  `resume it with \`${connector`run unpause`}\``,
)

export const configureUnpause = signalCommand('unpause', 'resumes.', 'resume a paused run')

export const configureStop = signalCommand(
  'stop',
  'stops cleanly: it begins nothing more, ends what is in progress, and writes its report. Nothing is lost.',
  'end a run; its report says what is missing',
)

const approveInput = z.object({
  count: z
    .int()
    .min(0)
    .optional()
    .meta({ flag: '--count <n>', help: 'for deletes: how many there are, typed by you' }),
})

export function configureApprove(command: Command, terminal: Terminal): void {
  addInputOptions(addDecision(addRun(command)), approveInput).action(
    async (run: string, options: DecisionOptions) => {
      const input = { ...decisionOf(options), ...inputOf(approveInput, options) }
      const settings = processSettings()
      const answer = await updateRun<string>({ settings, terminal, run, name: 'approve', input })
      terminal.result({ document: { run, answer }, text: `${run} continues: ${answer}.` })
    },
  )
  addExamples(command, 'inspect', {
    'run approve import-retentions-rows-6a47033b --why "totals match the sheet"':
      'send what the run has previewed',
    'run approve import-delete-orders-rows-6a47033b --count 12 --why "cancelled by the customer"':
      'approve 12 deletes',
  })
}

const resolveInput = z.object({
  rows: z
    .array(z.int().min(1))
    .meta({ flag: '--rows <rows>', help: 'the parked rows, as in parked.csv: 17, or 17,18' }),
  exists: z.string().refine(isId, idRule).optional().meta({
    flag: '--exists <id>',
    help: 'the service has the record under this id; it is asked, and a later --exists corrects it',
  }),
  absent: z
    .boolean()
    .optional()
    .meta({ flag: '--absent', help: 'the service does not have it: send it again' }),
  drop: z.boolean().optional().meta({ flag: '--drop', help: 'do not send it' }),
})

export function configureResolve(command: Command, terminal: Terminal): void {
  addDecision(addInputOptions(addRun(command), resolveInput)).action(
    async (run: string, options: DecisionOptions) => {
      const { rows, ...outcome } = inputOf(resolveInput, options)
      if (Object.keys(outcome).length !== 1)
        throw new UsageError('Give one of --exists <id>, --absent and --drop.')
      const input = { rows, ...outcome, ...decisionOf(options) }
      const answer = await resolveInRun({ settings: processSettings(), terminal, run, input })
      const text = `${answer}. Follow the run with: ${connector`run watch ${run}`}`
      terminal.result({ document: { run, answer }, text })
    },
  )
  addExamples(command, 'run', {
    'run resolve import-retentions-rows-6a47033b --rows 17 --exists 5012 --why "found in the UI"':
      'the service has the record',
    'run resolve import-retentions-rows-6a47033b --rows 18,19 --absent --why "not in the list of the day"':
      'send both rows again',
  })
}

/** The rate of a run in progress has an option: it is what people change while a run works. */
const runLimits = importLimits.extend({
  requestsPerSecond: importLimits.shape.requestsPerSecond.meta({ flag: '--rate <n>' }),
})

export function configureLimits(command: Command, terminal: Terminal): void {
  addDecision(addOtherFields(addInputOptions(addRun(command), runLimits), runLimits)).action(
    async (run: string, options: DecisionOptions) => {
      const limits = inputOf(runLimits, options)
      if (Object.keys(limits).length === 0) throw new UsageError('Name a limit; see --help.')
      const input = { ...limits, ...decisionOf(options) }
      const settings = processSettings()
      const now = await updateRun<object>({ settings, terminal, run, name: 'setLimits', input })
      const list = Object.entries(now).map(([name, value]) => `${name} ${value}`)
      terminal.result({ document: { run, limits: now }, text: `${run}: ${list.join(', ')}` })
    },
  )
  addExamples(command, 'inspect', {
    'run limits recover-8a3f52e1b6 --rate 2 --why "the service is slow"': 'slow a run down while it works',
    'run limits recover-8a3f52e1b6 --input maxChanges=500 --why "agreed with Ana"': 'change its bounds',
  })
}
