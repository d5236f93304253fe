import type { Command } from 'commander'
import { reportExport } from '../runs/report-export.ts'
import { findRun } from '../runs/find-run.ts'
import { followExport } from '../runs/follow.ts'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

export function configure(command: Command, terminal: Terminal): void {
  command.argument('<run>', 'workflow id of the run').action(async (run: string) => {
    const settings = processSettings()
    await using client = await openClient({ settings, terminal })
    // Ctrl-C ends only the watching; `connector stop` stops the run.
    const detach = () => {
      terminal.note(`The run ${run} continues.`)
      process.exit(exitCodes.failed)
    }
    using _interrupt = onInterrupt({ first: detach, second: detach })
    const found = await findRun({ client, run })
    if (found.type !== 'export') {
      const session = { client, lost: new AbortController().signal }
      const { followImport, followRecovery } = await import('../runs/follow-changes.ts')
      if (found.type === 'import') await followImport({ session, ...found, terminal, settings })
      else await followRecovery({ session, ...found, terminal, settings })
      return
    }
    const report = await followExport({ client, handle: found.handle, terminal })
    await reportExport({ report, terminal })
  })
  addExamples(command, 'run', {
    'watch export-all-20261121-020000': 'Ctrl-C stops watching; the run continues',
  })
}
