import type { ExportReport } from '../../core/exports/report.ts'
import type { Notifier } from './notify.ts'

/** Notifies people of the end of an export that did not fail as a whole. */
export async function notifyOfExport(ended: { notifier: Notifier; report: ExportReport }): Promise<void> {
  const { notifier, report } = ended
  const { verdict, summary } = report
  // If only some of the lists failed, the run completes, so the failure is notified here.
  if (verdict === 'failed' || verdict === 'unproven')
    return await notifier.notify({ kind: verdict, summary, report })
  const published = report.exports.flatMap((result) => ('published' in result ? result.published : []))
  const warnings = published.flatMap(({ warnings: own }) => own)
  if (warnings.length === 0) return await notifier.notify({ kind: 'ended', summary, report })
  // Proven, but a person has to decide on deletes that were held back.
  await notifier.notify({ kind: 'attention', summary: [summary, ...warnings].join('; '), report })
}
