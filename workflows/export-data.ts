import { proxyActivities } from '@temporalio/workflow'
import type { ExportReport } from '../activities/close-export.ts'
import type { Activities } from '../activities/index.ts'
import type { ExportInput } from '../activities/open-export.ts'
import { exportRun } from './export-run.ts'
import { scheduledBy } from './notices.ts'

const { openExport } = proxyActivities<Activities>({
  // A stopped run has ended when its step has: what the step still does is in the report.
  cancellationType: 'WAIT_CANCELLATION_COMPLETED',
  startToCloseTimeout: '5 minutes',
  heartbeatTimeout: '5s',
  // A service or a disk that is away for some minutes is waited for; a refusal is not retried at all.
  retry: { initialInterval: '2s', maximumInterval: '1 minute', maximumAttempts: 15 },
})

/**
 * Exports lists of the service to their destinations and ends in a report that says, list by list, whether the
 * export is proven complete. One resource that fails does not stop the others.
 */
export async function exportData(input?: ExportInput | null): Promise<ExportReport> {
  const summary = 'check input, service and data folder'
  const open = () => openExport.executeWithOptions({ summary }, [input ?? {}, scheduledBy()])
  return exportRun({ what: 'export', open })
}
