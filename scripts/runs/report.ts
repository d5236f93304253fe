import { connector } from '../../core/runs/view/shell.ts'
import { join } from 'node:path'
import { type ExportReport, reportFile, toDocument } from '../../core/exports/report.ts'
import { toExportView } from '../../core/exports/view.ts'
import { pageName } from '../../core/runs/view/view.ts'
import { toText } from '../../core/runs/view/text.ts'
import { exitCodes, RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { writeImportReport } from '../../core/imports/report.ts'
import type { ImportNotes } from '../../core/imports/run-files.ts'
import { fetchInput } from '../../core/imports/stored-input.ts'
import type { FullReport as FullImportReport } from '../../core/imports/view.ts'
import type { RecoveryNotes } from '../../core/recoveries/open.ts'
import { writeRecoveryReport } from '../../core/recoveries/report.ts'
import type { FullReport as FullRecoveryReport } from '../../core/recoveries/view.ts'
import { createRunNotes, type EndedNote } from '../../core/runs/run-notes.ts'
import { readJson } from '../../core/storage/durable.ts'
import type { ReportCounts } from '../../core/runs/view/counts.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fetchRun, openToRead, planOf } from './run-files.ts'

const exportCodes = {
  proven: exitCodes.proven,
  unproven: exitCodes.unproven,
  stopped: exitCodes.unproven,
  failed: exitCodes.failed,
} as const

/**
 * Prints the report of a run that has left one in the data folder, and sets its exit code. Returns the path of its
 * page.
 */
export async function reportRun(of: RunToReport): Promise<string> {
  const { run, settings, terminal } = of
  const { dataDir } = settings
  const plan = await planOf(settings, run)
  if (plan !== undefined) {
    const { folder } = await (plan.job === 'import' ? reportImport : reportRecovery)(of)
    return join(folder, pageName)
  }
  await fetchRun(settings, run)
  const report = await readJson<ExportReport>(reportFile({ dataDir, run, ending: '.json' }))
  if (report === undefined)
    throw new RefusedError(`There is no report of a run ${run} in ${dataDir}.`, {
      hint: `A run in progress has none yet: see \`${connector`run show`}\`.`,
    })
  reportExport({ report, terminal })
  return reportFile({ dataDir, run, ending: '.html' })
}

/** Prints the report of an export and sets its exit code. */
export function reportExport(of: {
  report: ExportReport
  terminal: Terminal
  local?: boolean | undefined
}): void {
  const { report, terminal, local } = of
  terminal.result({ document: toDocument(report), text: toText(toExportView(report), { local }) })
  // Nonexistent ids need a person, even in a proven fetch.
  const isIncomplete = report.verdict === 'proven' && report.missing !== undefined
  process.exitCode = isIncomplete ? exitCodes.unproven : exportCodes[report.verdict]
}

interface RunToReport {
  run: string
  terminal: Terminal
  settings: Settings
  local?: boolean | undefined
}

/** Enough to see what is wrong; the files contain all of them. */
const firstErrors = 5

/** Rewrites the report of an import from the ledger, prints it and sets its exit code. */
export async function reportImport(of: RunToReport): Promise<FullImportReport> {
  const { run, terminal, settings, local } = of
  const { dataDir } = settings
  const shared = await fetchRun(settings, run)
  await using state = await openToRead(settings.state)
  const notes = createRunNotes(state)
  const { plan } = await notes.read<ImportNotes>(run)
  if (plan?.job !== 'import') throw new RangeError(`${run} has no plan`)
  await fetchInput({ ...plan, dataDir, shared })
  const { report, view } = await writeImportReport({ ledger: state.ledger, notes, plan, dataDir })
  const findings = (report.audit?.first ?? []).slice(0, firstErrors).map(({ message }) => ({ text: message }))
  const problems = [...(view.problems ?? []), ...findings]
  terminal.result({ document: report, text: toText({ ...view, problems }, { local }) })
  process.exitCode = exitCodeOf(report)
  return report
}

/** Rewrites the report of a recovery from the ledger, prints it and sets its exit code. */
export async function reportRecovery(of: RunToReport): Promise<FullRecoveryReport> {
  const { run, terminal, settings, local } = of
  const { dataDir } = settings
  await fetchRun(settings, run)
  await using state = await openToRead(settings.state)
  const notes = createRunNotes(state)
  const { plan } = await notes.read<RecoveryNotes>(run)
  if (plan?.job !== 'recovery') throw new RangeError(`${run} has no plan`)
  const { report, view } = await writeRecoveryReport({ ledger: state.ledger, notes, plan, dataDir })
  terminal.result({ document: report, text: toText(view, { local }) })
  process.exitCode = exitCodeOf(report)
  return report
}

function exitCodeOf({
  verdict,
  counts,
  ended,
}: {
  verdict: 'proven' | 'unproven' | 'dryRun'
  counts: ReportCounts
  ended?: EndedNote
}): number {
  if (verdict === 'dryRun') return exitCodes.proven
  if (ended?.how === 'refused') return exitCodes.refused
  if (ended?.how === 'failed') return exitCodes.failed
  // Proven: nothing is open, unknown or parked, except subscriptions that a recovery only reports. Rejected rows
  // still have to be fixed.
  return verdict === 'proven' && counts.rejected === 0 ? exitCodes.proven : exitCodes.unproven
}
