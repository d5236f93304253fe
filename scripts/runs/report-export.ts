import { type ExportReport, toDocument } from '../../core/exports/report.ts'
import { toExportView } from '../../core/exports/view.ts'
import { toText } from '../../core/runs/view/text.ts'
import { exitCodes } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'

const exportCodes = {
  proven: exitCodes.proven,
  unproven: exitCodes.unproven,
  stopped: exitCodes.unproven,
  failed: exitCodes.failed,
} as const

/** Prints the report of an export and sets its exit code. */
export async function reportExport({
  report,
  terminal,
  local,
}: {
  report: ExportReport
  terminal: Terminal
  local?: boolean | undefined
}): Promise<void> {
  terminal.result({ document: toDocument(report), text: toText(toExportView(report), { local }) })
  // Nonexistent ids need a person, even in a proven fetch.
  const isIncomplete = report.verdict === 'proven' && report.missing !== undefined
  process.exitCode = isIncomplete ? exitCodes.unproven : exportCodes[report.verdict]
}
