import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { toFileName } from '../../core/storage/file-name.ts'
import { reportFile } from '../../core/exports/report-files.ts'
import { importFolder, recoveryFolder } from './run-folders.ts'
import type { Terminal } from '../terminal/terminal.ts'

/**
 * The run that a name on the command line means. A workflow id that was started several times has several runs:
 * `<id>`, `<id>.2`, `<id>.3`. The id means the newest of them, and a note says so; `<id>.1` means the first.
 */
export function newestRun(options: {
  dataDir: string
  run: string
  terminal: Pick<Terminal, 'note'>
  /** Whether there is such a run. Default: the data folder has anything of it. */
  isThere?: (of: { dataDir: string; run: string }) => boolean
}): string {
  const { dataDir, run, terminal, isThere = isInDataFolder } = options
  const first = run.endsWith('.1') && !isThere({ dataDir, run }) ? run.slice(0, -'.1'.length) : undefined
  if (first !== undefined && isThere({ dataDir, run: first })) return first
  let newest = run
  for (let use = 2; isThere({ dataDir, run: `${run}.${use}` }); use += 1) newest = `${run}.${use}`
  if (newest !== run) terminal.note(`${newest} is the newest run of ${run}; ${run}.1 names the first.`)
  return newest
}

const isInDataFolder = (of: { dataDir: string; run: string }): boolean =>
  existsSync(importFolder(of)) || existsSync(recoveryFolder(of)) || isExport(of)

const isExport = (of: { dataDir: string; run: string }): boolean =>
  existsSync(join(of.dataDir, 'parts', toFileName(of.run))) ||
  existsSync(reportFile({ ...of, ending: '.json' }))

/** The newest export or fetch under a name. */
export const newestExport = (options: Omit<Parameters<typeof newestRun>[0], 'isThere'>): string =>
  newestRun({ ...options, isThere: isExport })
