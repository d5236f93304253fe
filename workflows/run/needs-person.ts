import type { ExportReport } from '../../core/exports/report.ts'

/** Whether a person has to look at the end of an export or a fetch. A person knows of a stop already. */
export function needsPerson({ verdict, exports, missing }: ExportReport): boolean {
  const published = exports.flatMap((result) => ('published' in result ? result.published : []))
  const isWarned = published.some(({ warnings }) => warnings.length > 0)
  return verdict === 'failed' || verdict === 'unproven' || missing !== undefined || isWarned
}
