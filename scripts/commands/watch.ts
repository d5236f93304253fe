import type { Command } from 'commander'
import { reportExport } from '../runs/report.ts'
import { findChanges, findRun } from '../runs/find-run.ts'
import { followExport, followImport, followRecovery } from '../runs/follow.ts'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { exitCodes } from '../terminal/failures.ts'
import { onInterrupt } from '../terminal/interrupt.ts'
import type { Terminal } from '../terminal/terminal.ts'

export function configure(command: Command, terminal: Terminal): void {
  command.argument('<run>', 'the workflow id of the run').action(async (run: string) => {
    const settings = processSettings()
    await using client = await openClient(settings)
    // Who only looks on does not stop the run: `connector stop` does.
    const letGo = () => {
      terminal.note(`The run ${run} goes on.`)
      process.exit(exitCodes.failed)
    }
    using _interrupt = onInterrupt({ first: letGo, second: letGo })
    const ofChanges = await findChanges({ client, run })
    if (ofChanges !== undefined) {
      const session = { client, gone: new AbortController().signal }
      if (ofChanges.type === 'import') await followImport({ session, ...ofChanges, terminal, settings })
      else await followRecovery({ session, ...ofChanges, terminal, settings })
      return
    }
    const { handle } = await findRun({ client, run, types: ['exportData', 'fetchDocuments', 'publishRun'] })
    const report = await followExport({ client, handle, terminal })
    await reportExport({ report, terminal })
  })
}
