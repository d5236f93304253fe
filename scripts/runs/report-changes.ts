import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { runFiles } from '../../core/imports/input.ts'
import { writeImportReport } from '../../core/imports/report.ts'
import type { FullReport as FullImportReport } from '../../core/imports/view.ts'
import { writeRecoveryReport } from '../../core/recoveries/report.ts'
import type { FullReport as FullRecoveryReport } from '../../core/recoveries/view.ts'
import type { EndedNote } from '../../core/runs/run-files.ts'
import { createRunNotes } from '../../core/runs/run-notes.ts'
import type { ReportCounts } from '../../core/runs/view/counts.ts'
import { toText } from '../../core/runs/view/text.ts'
import { openState } from '../../core/state/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { exitCodes } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { fetchInput } from './fetch-run.ts'
import { planOf, savedRecovery } from './saved-plan.ts'

interface RunToReport {
  run: string
  terminal: Terminal
  settings: Settings
  local?: boolean | undefined
}

/** Enough to see what is wrong; the files contain all of them. */
const firstErrors = 5

/** Rewrites the report of an import from the ledger, prints it and sets its exit code. */
export async function reportImport(options: RunToReport): Promise<FullImportReport> {
  const { run, terminal, settings, local } = options
  const { dataDir } = settings
  const plan = await planOf(settings, run)
  if (plan === undefined) throw new RangeError(`${run} has no plan`)
  await fetchInput(settings, plan)
  const state = await openState({ ...settings.state, readOnly: true })
  try {
    const notes = createRunNotes(state)
    const { report, view } = await writeImportReport({ ledger: state.ledger, notes, plan, dataDir })
    const findings = (report.audit?.first ?? [])
      .slice(0, firstErrors)
      .map(({ message }) => ({ text: message }))
    const problems = [...(view.problems ?? []), ...findings]
    terminal.result({ document: report, text: toText({ ...view, problems }, { local }) })
    if (report.ended?.how === 'finished') await writeFile(join(dataDir, plan.folder, runFiles.shown), '')
    process.exitCode = exitCodeOf(report)
    return report
  } finally {
    await state.close()
  }
}

/** Rewrites the report of a recovery from the ledger, prints it and sets its exit code. */
export async function reportRecovery(options: RunToReport): Promise<FullRecoveryReport> {
  const { run, terminal, settings, local } = options
  const { dataDir } = settings
  const saved = await savedRecovery(settings, run)
  if (saved === undefined) throw new RangeError(`${run} has no plan`)
  const state = await openState({ ...settings.state, readOnly: true })
  try {
    const notes = createRunNotes(state)
    const { report, view } = await writeRecoveryReport({ ledger: state.ledger, notes, saved, dataDir })
    terminal.result({ document: report, text: toText(view, { local }) })
    process.exitCode = exitCodeOf(report)
    return report
  } finally {
    await state.close()
  }
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
