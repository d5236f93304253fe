import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { toFileName } from '../../core/storage/file-name.ts'
import { reportFile } from '../../core/exports/report.ts'
import { importFolder, recoveryFolder } from './run-folders.ts'
import { isRunKept, type RunPlaces, sharedFiles } from './fetch-run.ts'
import type { Terminal } from '../terminal/terminal.ts'

interface Run {
  dataDir: string
  run: string
}

/**
 * Resolves a name on the command line to a run. A workflow id that was started several times has several runs:
 * `<id>`, `<id>.2`, `<id>.3`. The id means the newest of them, and a note says so; `<id>.1` means the first.
 */
export async function newestRun(options: {
  places: RunPlaces
  run: string
  terminal: Pick<Terminal, 'note'>
  /** Whether the data folder has files of a run. */
  isInFolder?: (run: Run) => boolean
}): Promise<string> {
  const { places, run, terminal, isInFolder = isInDataFolder } = options
  const store = sharedFiles(places)
  const { dataDir } = places
  const isThere = async (name: string) =>
    isInFolder({ dataDir, run: name }) || (store !== undefined && (await isRunKept(store, name)))
  const first = run.endsWith('.1') && !(await isThere(run)) ? run.slice(0, -'.1'.length) : undefined
  if (first !== undefined && (await isThere(first))) return first
  let newest = run
  for (let use = 2; await isThere(`${run}.${use}`); use += 1) newest = `${run}.${use}`
  if (newest !== run) terminal.note(`${newest} is the newest run of ${run}; ${run}.1 names the first.`)
  return newest
}

const isInDataFolder = (run: Run): boolean =>
  existsSync(importFolder(run)) || existsSync(recoveryFolder(run)) || isExport(run)

const isExport = (run: Run): boolean =>
  existsSync(join(run.dataDir, 'parts', toFileName(run.run))) ||
  existsSync(reportFile({ ...run, ending: '.json' }))

/** Resolves a name to the newest export or fetch. */
export const newestExport = (options: Omit<Parameters<typeof newestRun>[0], 'isInFolder'>): Promise<string> =>
  newestRun({ ...options, isInFolder: isExport })
