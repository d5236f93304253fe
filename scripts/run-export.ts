import type { ExportInput } from '../activities/open-export.ts'
import type { Settings } from '../worker/settings.ts'
import { stopOnInterrupt } from './follow-export.ts'
import { runToReport } from './run-to-report.ts'
import { startExport } from './start-export.ts'
import type { Terminal } from './terminal/terminal.ts'

/** Starts an export, or goes on with the unfinished one of the same input, and tells how it ends. */
export async function runExport(options: {
  settings: Settings
  terminal: Terminal
  input: ExportInput
  local: boolean
  detach: boolean
}): Promise<void> {
  const { settings, terminal, input, local, detach } = options
  await runToReport({
    settings,
    terminal,
    local,
    detach,
    needsService: true,
    async start({ client, identity }) {
      const { taskQueue } = settings
      const { handle, attached } = await startExport({ client, taskQueue, input: { ...input, identity } })
      terminal.note(`${attached ? 'Goes on with the unfinished run' : 'Run'} ${handle.workflowId}`)
      return handle
    },
    onInterrupt: ({ handle, letGo }) => stopOnInterrupt({ handle, terminal, letGo }),
  })
}
