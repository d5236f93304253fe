import type { ExportReport } from '../activities/close-export.ts'
import type { Notices } from './notices.ts'

/** Tells people how an export ended that did not fail as a whole. */
export async function tellExport(of: { notices: Notices; report: ExportReport }): Promise<void> {
  const { notices, report } = of
  const { verdict, summary } = report
  // Some lists may have failed beside others that did not: then the run completes.
  const kind = verdict === 'proven' || verdict === 'stopped' ? 'ended' : verdict
  await notices.tell({ kind, summary, report })
}
