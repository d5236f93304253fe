import { proxyActivities } from '@temporalio/workflow'
import type { ExportReport } from '../core/exports/report.ts'
import type { Activities } from '../activities/index.ts'
import { opening } from './run/activity-options.ts'
import type { ExportInput } from '../core/exports/input.ts'
import { exportRun } from './export-run.ts'
import { scheduledBy } from './run/notify.ts'

const { openExport } = proxyActivities<Activities>(opening)

/**
 * Exports lists of the service to their destinations. The report says for each list whether the export is proven
 * complete. A resource that fails does not stop the others.
 */
export async function exportData(input?: ExportInput | null): Promise<ExportReport> {
  const summary = 'check input, service and data folder'
  const open = () => openExport.executeWithOptions({ summary }, [input ?? {}, scheduledBy()])
  return exportRun({ name: 'export', open })
}
