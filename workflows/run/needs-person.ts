import type { ExportReport } from '../../core/exports/report.ts'

/** Whether the end of an export or a fetch needs a person. A stop does not: a person caused it. */
export function needsPerson({ verdict, exports, missing }: ExportReport): boolean {
  const published = exports.flatMap((result) => ('published' in result ? result.published : []))
  const isWarned = published.some(({ warnings }) => warnings.length > 0)
  return verdict === 'failed' || verdict === 'unproven' || missing !== undefined || isWarned
}
