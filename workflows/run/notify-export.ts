import type { ExportReport } from '../../core/exports/report.ts'
import type { Notices } from './notify.ts'

/** Tells people how an export ended that did not fail as a whole. */
export async function tellExport(of: { notices: Notices; report: ExportReport }): Promise<void> {
  const { notices, report } = of
  const { verdict, summary } = report
  // Some lists may have failed beside others that did not: then the run completes.
  if (verdict === 'failed' || verdict === 'unproven')
    return await notices.tell({ kind: verdict, summary, report })
  const published = report.exports.flatMap((one) => ('published' in one ? one.published : []))
  const warnings = published.flatMap((one) => one.warnings)
  if (warnings.length === 0) return await notices.tell({ kind: 'ended', summary, report })
  // Proven, and yet somebody has to decide: deletes that were held back.
  await notices.tell({ kind: 'attention', summary: [summary, ...warnings].join('; '), report })
}
