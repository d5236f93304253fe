import type { Command } from 'commander'
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { exitCodes, RefusedError, UsageError } from '../../../../scripts/terminal/failures.ts'
import { onInterrupt, type Terminal } from '../../../../scripts/terminal/terminal.ts'

type Act = (terminal: Terminal) => void | Promise<void>

const acts: Record<string, Act> = {
  succeed(terminal) {
    terminal.identity({ workspace: 'acc_1', testMode: true })
    terminal.note('on the way')
    terminal.result({ document: { summary: 'well' }, text: 'all is well' })
  },
  unproven: () => void (process.exitCode = exitCodes.unproven),
  refuse() {
    throw new RefusedError('The run is finished.', { hint: 'Start a new one.' })
  },
  misuse() {
    throw new UsageError('--rows names row 9, the file has 3; name rows of the file.')
  },
  fail() {
    throw new Error('The disk\n  is full.')
  },
  async failInTemporal() {
    const { ApplicationFailure, WorkflowFailedError } = await import('@temporalio/client')
    const cause = ApplicationFailure.nonRetryable('maxPages must be a number', 'InvalidInput')
    throw new WorkflowFailedError('Workflow execution failed', cause, 'NON_RETRYABLE_FAILURE')
  },
  async failUnseen() {
    void Promise.reject(new Error('nobody awaited this'))
    await sleep(60_000)
  },
  async settings() {
    const { readSettings } = await import('../../../../worker/settings/settings.ts')
    readSettings({ env: {}, cwd: '/nowhere' })
  },
  async progress(terminal) {
    const bar = terminal.progress({ name: 'customers', unit: 'records' })
    bar.update({ done: 4_500, total: 10_000, note: '45 pages' })
    bar.end()
    terminal.task('Waiting').end()
    terminal.progress({ name: 'left open', unit: 'records' })
  },
  async interrupt(terminal) {
    const heard = new EventTarget()
    const done = once(heard, 'second')
    using _ = onInterrupt({
      first: () => terminal.note('first'),
      second: () => void heard.dispatchEvent(new Event('second')),
    })
    const awake = setInterval(() => undefined, 1_000)
    terminal.note('ready')
    await done
    clearInterval(awake)
    terminal.note('second')
  },
  async ask(terminal) {
    terminal.note(JSON.stringify([terminal.isInteractive, await terminal.ask('Sure? ')]))
  },
  print: (terminal) => {
    for (let row = 0; row < 50_000; row++) terminal.result({ document: row, text: `row ${row}` })
  },
}

export function configure(command: Command, terminal: Terminal) {
  command
    .argument('<how>', 'what to do')
    .option('--shade <name>')
    .action(async (how: string) => acts[how]?.(terminal))
}
