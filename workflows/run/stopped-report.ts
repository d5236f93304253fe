import { setCurrentDetails, workflowInfo } from '@temporalio/workflow'
import type { ExportReport } from '../../core/exports/report.ts'

/** The report of a run that was stopped while its input was checked, before any step could write one. */
export function stoppedReport(step: 'read' | 'published'): ExportReport {
  const summary = `Stopped before anything was ${step}`
  setCurrentDetails(summary)
  return { summary, run: workflowInfo().workflowId, verdict: 'stopped', exports: [] }
}
