import type { ExportReport } from '../../core/exports/report.ts'
import type { Notifier } from './notify.ts'

/** Notifies people of the end of an export that did not fail as a whole. */
export async function notifyOfExport(ended: { notifier: Notifier; report: ExportReport }): Promise<void> {
  const { notifier, report } = ended
  const { verdict } = report
  const published = report.exports.flatMap((result) => ('published' in result ? result.published : []))
  // The destinations of a list share most of them.
  const warnings = [...new Set(published.flatMap(({ warnings: own }) => own))]
  const parts = [report.summary, ...warnings].map((text) => text.replace(/\.$/, ''))
  const summary = warnings.length === 0 ? report.summary : parts.join('; ')
  // If only some of the lists failed, the run completes, so the failure is notified here.
  const isBad = verdict === 'failed' || verdict === 'unproven'
  await notifier.notify({
    kind: isBad ? verdict : warnings.length > 0 ? 'attention' : 'ended',
    summary,
    report,
  })
}
