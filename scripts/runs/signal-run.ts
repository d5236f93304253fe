import { WorkflowNotFoundError } from '@temporalio/client'
import type { Command } from 'commander'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** A command that sends a run one signal. */
export function configureSignal(options: {
  command: Command
  terminal: Terminal
  signal: 'pause' | 'unpause' | 'stop'
  /** Follows the name of the run in the answer. */
  answer: string
}): void {
  const { command, terminal, signal, answer } = options
  command.argument('<run>', 'workflow id of the run').action(async (run: string) => {
    await using client = await openClient(processSettings())
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
