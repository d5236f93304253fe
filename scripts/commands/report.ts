import type { Command } from 'commander'
import { readFile } from 'node:fs/promises'
import { type ExportReport, reportFile } from '../../core/exports/report.ts'
import { newestRun } from '../runs/newest-run.ts'
import { reportExport } from '../runs/report-export.ts'
import { planOf, savedRecovery } from '../runs/saved-plan.ts'
import { processSettings } from '../session/settings.ts'
import { RefusedError } from '../terminal/failures.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

/** The reports of exports are the most, and need nothing of imports and recoveries. */
const loadChanges = () => import('../runs/report-changes.ts')

/** Shows a report from the data folder. Needs no Temporal, so it works long after a run has ended. */
export function configure(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'name of the run, or a workflow id for its newest run')
    .action(async (name: string) => {
      const settings = processSettings()
      const run = await newestRun({ places: settings, run: name, terminal })
      if ((await planOf(settings, run)) !== undefined) {
        const { reportImport } = await loadChanges()
        await reportImport({ run, terminal, settings })
        return
      }
      if ((await savedRecovery(settings, run)) !== undefined) {
        const { reportRecovery } = await loadChanges()
        await reportRecovery({ run, terminal, settings })
        return
      }
      const path = reportFile({ dataDir: settings.dataDir, run, ending: '.json' })
      const text = await readFile(path, 'utf8').catch((cause: unknown) => {
        throw new RefusedError(`There is no report of a run ${run} in ${settings.dataDir}.`, {
          cause,
          hint: 'A run in progress has none yet: see `connector status`.',
        })
      })
      await reportExport({ report: JSON.parse(text) as ExportReport, terminal })
    })
  addExamples(command, 'run', {
    'report export-all-20261121-020000': 'works without Temporal, also for old runs',
    'report export-all-20261121-020000 --json': 'the same for programs',
  })
}
