import type { ExportReport } from '../../core/exports/report.ts'

/** Whether somebody has to look at how an export or a fetch ended: a run that was stopped was stopped by somebody. */
export function needsPerson({ verdict, exports, missing }: ExportReport): boolean {
  const published = exports.flatMap((one) => ('published' in one ? one.published : []))
  const isWarned = published.some(({ warnings }) => warnings.length > 0)
  return verdict === 'failed' || verdict === 'unproven' || missing !== undefined || isWarned
}
