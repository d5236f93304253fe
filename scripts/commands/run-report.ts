import type { Command } from 'commander'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type ExportReport, reportFile } from '../../core/exports/report.ts'
import { pageName } from '../../core/runs/view/view.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { readPlaces, readStatePlace } from '../../worker/settings/settings.ts'
import { fetchRun } from '../runs/fetch-run.ts'
import { importFolder, recoveryFolder } from '../runs/run-folders.ts'
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
export function configureReport(command: Command, terminal: Terminal): void {
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
          hint: `A run in progress has none yet: see \`${connector`run show`}\`.`,
        })
      })
      await reportExport({ report: JSON.parse(text) as ExportReport, terminal })
    })
  addExamples(command, 'run', {
    'run report export-all-1f0c2b7a90': 'works without Temporal, also for old runs',
    'run report export-all-1f0c2b7a90 --json': 'the same for programs',
  })
}

/** The program of each platform that opens a file like a double click. */
const openers: Partial<Record<NodeJS.Platform, [string, ...string[]]>> = {
  darwin: ['open'],
  win32: ['cmd', '/c', 'start', ''],
}

export function configureOpen(command: Command, terminal: Terminal): void {
  command
    .argument('<run>', 'name of the run, or a workflow id for its newest run')
    .action(async (name: string) => {
      const source = { env: process.env, cwd: process.cwd() }
      const places = { ...readPlaces(source), state: readStatePlace(source) }
      const { dataDir } = places
      const run = await newestRun({ places, run: name, terminal })
      await fetchRun(places, run)
      const pages = [
        join(importFolder({ dataDir, run }), pageName),
        join(recoveryFolder({ dataDir, run }), pageName),
        reportFile({ dataDir, run, ending: '.html' }),
      ]
      const page = pages.find(existsSync)
      if (page === undefined)
        throw new RefusedError(`There is no report page of a run ${run} in ${dataDir}.`, {
          hint: `A run in progress has none yet: see \`${connector`run show ${run}`}\`.`,
        })
      const opened = await openPage(page)
      terminal.result({ document: { run, page, opened }, text: opened ? `Opened ${page}` : page })
    })
  addExamples(command, 'inspect', {
    'run open import-retentions-rows-6a47033b': 'report.html in your browser',
  })
}

/** Opens a page. False if there is no program for it, for example on a server. */
async function openPage(page: string): Promise<boolean> {
  const [program, ...args] = openers[process.platform] ?? ['xdg-open']
  const child = spawn(program, [...args, page], { stdio: 'ignore', detached: true, env: process.env })
  const failed = once(child, 'error').then(
    () => false,
    () => false,
  )
  const started = once(child, 'spawn').then(
    () => true,
    () => false,
  )
  child.unref()
  return await Promise.race([failed, started])
}
