import { WorkflowNotFoundError } from '@temporalio/client'
import type { Command } from 'commander'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** A command that tells a run one thing: `pause`, `unpause` or `stop`. */
export function configureSignal(options: {
  command: Command
  terminal: Terminal
  signal: 'pause' | 'unpause' | 'stop'
  said: string
}): void {
  const { command, terminal, signal, said } = options
  command.argument('<run>', 'the workflow id of the run').action(async (run: string) => {
    await using client = await openClient(processSettings())
    try {
      await client.workflow.getHandle(run).signal(signal)
    } catch (error) {
      if (!(error instanceof WorkflowNotFoundError)) throw error
      throw new RefusedError(`There is no run ${run} that has not ended.`, {
        hint: '`connector runs` lists the runs.',
      })
    }
    terminal.result({ document: { run, signal }, text: `${run} ${said}` })
  })
}
