import { readFile } from 'node:fs/promises'
import { type RecoveryReport } from '../../core/recoveries/view.ts'
import { writeRecoveryReport } from '../../core/recoveries/report.ts'
import { openState } from '../../core/state/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { exitCodeOf } from './exit-code.ts'
import { describePreview } from './preview-recovery.ts'
import { savedRecovery } from './recovery-folder.ts'
import { formatTable } from '../terminal/format.ts'
import type { Terminal } from '../terminal/terminal.ts'

/**
 * Writes the report of a recovery anew from the ledger and tells it: of a run that has ended, goes on or died.
 * Sets the exit code it earns.
 */
export async function reportRecovery({
  run,
  terminal,
  settings,
}: {
  run: string
  terminal: Terminal
  settings: Settings
}): Promise<RecoveryReport> {
  const { dataDir } = settings
  const saved = await savedRecovery(settings, run)
  if (saved === undefined) throw new RangeError(`${run} has no plan`)
  const state = await openState({ folder: dataDir, readOnly: true })
  try {
    const report = await writeRecoveryReport({ ledger: state.ledger, saved, dataDir })
    const document: unknown = JSON.parse(await readFile(report.files.report ?? '', 'utf8'))
    terminal.result({ document, text: toText(report) })
    process.exitCode = exitCodeOf(report)
    return report
  } finally {
    await state.close()
  }
}

function toText({
  run,
  summary,
  byReason,
  needsPerson,
  files,
  verdict,
  preview,
  continueWith,
}: RecoveryReport) {
  const rows = Object.entries(byReason).flatMap(([reason, outcomes]) =>
    Object.entries(outcomes).map(([outcome, count]) => [reason || 'no reason', outcome, count] as const),
  )
  return [
    `${run}: ${summary}`,
    ...(rows.length > 0 ? [formatTable({ head: ['reason', 'outcome', 'subscriptions'], rows })] : []),
    ...(verdict === 'dryRun' && preview !== null ? [describePreview(preview)] : []),
    ...needsPerson.map((words) => `For a person: ${words}`),
    ...(continueWith === undefined ? [] : [`What is left goes on with: ${JSON.stringify(continueWith)}`]),
    ...Object.entries(files).map(([name, path]) => `${name}: ${path}`),
  ].join('\n')
}
