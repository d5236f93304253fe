import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { toFileName } from '../../core/storage/file-name.ts'
import { reportFile } from '../../core/exports/report-files.ts'
import { importFolder, recoveryFolder } from './run-folders.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Run {
  dataDir: string
  run: string
}

/**
 * Resolves a name on the command line to a run. A workflow id that was started several times has several runs:
 * `<id>`, `<id>.2`, `<id>.3`. The id means the newest of them, and a note says so; `<id>.1` means the first.
 */
export function newestRun(options: {
  dataDir: string
  run: string
  terminal: Pick<Terminal, 'note'>
  /** Whether a run exists. Default: the data folder has files of it. */
  isThere?: (run: Run) => boolean
}): string {
  const { dataDir, run, terminal, isThere = isInDataFolder } = options
  const first = run.endsWith('.1') && !isThere({ dataDir, run }) ? run.slice(0, -'.1'.length) : undefined
  if (first !== undefined && isThere({ dataDir, run: first })) return first
  let newest = run
  for (let use = 2; isThere({ dataDir, run: `${run}.${use}` }); use += 1) newest = `${run}.${use}`
  if (newest !== run) terminal.note(`${newest} is the newest run of ${run}; ${run}.1 names the first.`)
  return newest
}

const isInDataFolder = (run: Run): boolean =>
  existsSync(importFolder(run)) || existsSync(recoveryFolder(run)) || isExport(run)

const isExport = (run: Run): boolean =>
  existsSync(join(run.dataDir, 'parts', toFileName(run.run))) ||
  existsSync(reportFile({ ...run, ending: '.json' }))

/** Resolves a name to the newest export or fetch. */
export const newestExport = (options: Omit<Parameters<typeof newestRun>[0], 'isThere'>): string =>
  newestRun({ ...options, isThere: isExport })
