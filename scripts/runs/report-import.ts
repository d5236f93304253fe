import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ImportPlan, runFiles } from '../../core/imports/plan.ts'
import { readPlan } from '../../core/imports/run-files.ts'
import { type ImportReport } from '../../core/imports/view.ts'
import { writeImportReport } from '../../core/imports/report.ts'
import { openState, type State } from '../../core/state/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { exitCodeOf } from './exit-code.ts'
import { importFolder } from './import-folder.ts'
import { formatTable } from '../terminal/format.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Enough to see what is wrong; all of them are in the files. */
const firstErrors = 5

export const planOf = (settings: Settings, run: string): Promise<ImportPlan | undefined> =>
  readPlan(importFolder({ dataDir: settings.dataDir, run }))

/**
 * Writes the report of an import anew from the ledger and tells it: of a run that has ended, goes on or died.
 * Sets the exit code it earns.
 */
export async function reportImport({
  run,
  terminal,
  settings,
}: {
  run: string
  terminal: Terminal
  settings: Settings
}): Promise<ImportReport> {
  const { dataDir } = settings
  const plan = await planOf(settings, run)
  if (plan === undefined) throw new RangeError(`${run} has no plan`)
  const state = await openState({ folder: dataDir, readOnly: true })
  try {
    const report = await writeImportReport({ ledger: state.ledger, plan, dataDir })
    const document: unknown = JSON.parse(await readFile(report.files.report ?? '', 'utf8'))
    const text = await toText({ report, state })
    terminal.result({ document, text })
    if (report.ended?.how === 'finished') await writeFile(join(dataDir, plan.folder, runFiles.shown), '')
    process.exitCode = exitCodeOf(report)
    return report
  } finally {
    await state.close()
  }
}

async function toText({ report, state }: { report: ImportReport; state: State }): Promise<string> {
  const { counts, audit, files, run } = report
  const rows = Object.entries(counts).filter(([, count]) => count > 0)
  const table = formatTable({ head: ['outcome', 'rows'], rows })
  const errors = await firstOf({ state, run })
  const findings = (audit?.first ?? []).slice(0, firstErrors).map(({ words }) => words)
  const paths = Object.entries(files).map(([name, path]) => `${name}: ${path}`)
  return [
    `${run}: ${report.summary}`,
    ...(rows.length > 0 ? [table] : []),
    ...errors,
    ...findings,
    ...paths,
  ].join('\n')
}

async function firstOf({ state, run }: { state: State; run: string }): Promise<string[]> {
  const rows: string[][] = []
  for (const one of ['rejected', 'parked', 'unknown'] as const)
    for (const { row, error, outcome } of await state.ledger.page({ run, state: one, limit: firstErrors }))
      rows.push([String(row), one, error ?? outcome ?? ''])
  return rows.length === 0 ? [] : [formatTable({ head: ['row', 'is', 'why'], rows })]
}
