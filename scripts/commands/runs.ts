import type { Command } from 'commander'
import { openClient } from '../session/session.ts'
import { processSettings } from '../session/settings.ts'
import { formatDuration, formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import type { Terminal } from '../terminal/terminal.ts'

const mostRuns = 50

export function configure(command: Command, terminal: Terminal): void {
  command.option('--open', 'only those that have not ended').action(async (options: { open?: true }) => {
    const settings = processSettings()
    await using client = await openClient(settings)
    const types =
      "WorkflowType IN ('exportData', 'fetchDocuments', 'importFile', 'publishRun', 'recoverSubscriptions')"
    const query = `${types} AND TaskQueue = '${settings.taskQueue}'${options.open ? " AND ExecutionStatus = 'Running'" : ''}`
    const runs = []
    for await (const run of client.workflow.list({ query })) {
      const { workflowId, type, status, startTime, closeTime } = run
      runs.push({ run: workflowId, type, status: status.name.toLowerCase(), startTime, closeTime })
      if (runs.length === mostRuns) break
    }
    const rows = runs.map(({ run, status, startTime, closeTime }) => [
      run,
      status,
      formatLocalTime(startTime),
      formatDuration((closeTime ?? new Date()).getTime() - startTime.getTime()),
    ])
    const text =
      rows.length === 0 ? 'No runs.' : formatTable({ head: ['run', 'status', 'started', 'took'], rows })
    terminal.result({ document: { runs }, text })
  })
}
