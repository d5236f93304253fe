import { WorkflowNotFoundError } from '@temporalio/client'
import type { Command } from 'commander'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Configures a command that sends one signal to a run. */
export function configureSignal(options: {
  command: Command
  terminal: Terminal
  signal: 'pause' | 'unpause' | 'stop'
  /** Printed after the run's name. */
  answer: string
}): void {
  const { command, terminal, signal, answer } = options
  command.argument('<run>', 'workflow id of the run').action(async (run: string) => {
    await using client = await openClient({ settings: processSettings(), terminal })
    try {
      await client.workflow.getHandle(run).signal(signal)
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error
      throw new RefusedError(`There is no active run ${run}.`, {
        hint: '`connector runs` lists the runs.',
      })
    }
    terminal.result({ document: { run, signal }, text: `${run} ${answer}` })
  })
}
