import { connector } from '../../core/runs/view/shell.ts'
import { existsSync } from 'node:fs'
import { basename, join } from 'node:path'
import { type ExportReport, reportFile, reportsFolder, toDocument } from '../../core/exports/report.ts'
import { toExportView } from '../../core/exports/view.ts'
import { pageName, type View } from '../../core/runs/view/view.ts'
import { toText } from '../../core/runs/view/text.ts'
import { exitCodes, RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import type { FullChangesReport } from '../../core/changes/view.ts'
import type { Reporting } from '../../core/changes/write-report.ts'
import type { ImportPlan } from '../../core/imports/input.ts'
import { writeImportReport } from '../../core/imports/report.ts'
import { fetchInput } from '../../core/imports/stored-input.ts'
import type { FullReport as FullImportReport } from '../../core/imports/view.ts'
import type { RecoveryPlan } from '../../core/recoveries/input.ts'
import { writeRecoveryReport } from '../../core/recoveries/report.ts'
import type { FullReport as FullRecoveryReport } from '../../core/recoveries/view.ts'
import { createRunNotes } from '../../core/runs/run-notes.ts'
import type { SharedFolder } from '../../core/storage/cached.ts'
import { readJson } from '../../core/storage/durable.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fetchRun, openToRead, planOf, sharedFolder } from './run-files.ts'

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
  await reportExport({ report, settings, terminal })
  return reportFile({ dataDir, run, ending: '.html' })
}

/** Prints the report of an export and sets its exit code. */
export async function reportExport(of: {
  report: ExportReport
  settings: Settings
  terminal: Terminal
  local?: boolean | undefined
}): Promise<void> {
  const { settings, terminal, local } = of
  const report = await withPageHere(of.report, settings)
  terminal.result({ document: toDocument(report), text: toText(toExportView(report), { local }) })
  // Nonexistent ids need a person, even in a proven fetch.
  const isIncomplete = report.verdict === 'proven' && report.missing !== undefined
  process.exitCode = isIncomplete ? exitCodes.unproven : exportCodes[report.verdict]
}

/** With the path of this data folder's copy of its page, if it has one: the report names that of the worker. */
async function withPageHere(report: ExportReport, settings: Settings): Promise<ExportReport> {
  if (report.page === undefined) return report
  const page = join(reportsFolder(settings.dataDir), basename(report.page))
  // What the run did counts, also while its page cannot be fetched.
  await sharedFolder(settings)
    .fetch(page, { changes: true })
    .catch(() => undefined)
  return existsSync(page) ? { ...report, page } : report
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
export const reportImport = (of: RunToReport): Promise<FullImportReport> =>
  reportChanges(of, async (reporting: Reporting<ImportPlan>, shared) => {
    await fetchInput({ ...reporting, ...reporting.plan, shared })
    const { report, view } = await writeImportReport(reporting)
    const findings = (report.audit?.first ?? [])
      .slice(0, firstErrors)
      .map(({ message }) => ({ text: message }))
    return { report, view: { ...view, problems: [...(view.problems ?? []), ...findings] } }
  })

/** The same of a recovery. */
export const reportRecovery = (of: RunToReport): Promise<FullRecoveryReport> =>
  reportChanges(of, writeRecoveryReport)

async function reportChanges<Plan extends ImportPlan | RecoveryPlan, Full extends FullChangesReport>(
  { run, terminal, settings, local }: RunToReport,
  write: (reporting: Reporting<Plan>, shared: SharedFolder) => Promise<{ report: Full; view: View }>,
): Promise<Full> {
  const { dataDir } = settings
  const shared = await fetchRun(settings, run)
  await using state = await openToRead(settings.state)
  const notes = createRunNotes(state)
  const { plan } = await notes.read<{ plan: Plan }>(run)
  if (plan === undefined) throw new RangeError(`${run} has no plan`)
  const { report, view } = await write({ ledger: state.ledger, notes, plan, dataDir }, shared)
  terminal.result({ document: report, text: toText(view, { local }) })
  process.exitCode = exitCodeOf(report)
  return report
}

function exitCodeOf({ verdict, counts, ended }: FullChangesReport): number {
  if (verdict === 'dryRun') return exitCodes.proven
  if (ended?.how === 'refused') return exitCodes.refused
  if (ended?.how === 'failed') return exitCodes.failed
  // Proven: nothing is open, unknown or parked, except subscriptions that a recovery only reports. Rejected rows
  // still have to be fixed.
  return verdict === 'proven' && counts.rejected === 0 ? exitCodes.proven : exitCodes.unproven
}
