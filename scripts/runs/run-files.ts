import { readFile, rm } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { existsSync } from 'node:fs'
import { reportFile } from '../../core/exports/report.ts'
import type { StoredInput } from '../../core/imports/stored-input.ts'
import { type ImportPlan, runFiles } from '../../core/imports/input.ts'
import { runRooms } from '../../core/runs/step-folder.ts'
import { openState, type State, type StatePlace } from '../../core/state/open.ts'
import { toFileName } from '../../core/storage/file-name.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { checkOut, fetchFile, isKept } from '../../core/storage/kept-folder.ts'
import { orMissing } from '../../core/storage/system-errors.ts'
import { openFiles } from '../../worker/files.ts'
import { readPlan } from '../../core/imports/run-files.ts'
import { readSavedPlan, type SavedPlan } from '../../core/recoveries/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Where the files of runs are. */
export interface RunPlaces {
  dataDir: string
  state: StatePlace
  filesUrl: Settings['filesUrl']
  s3: Settings['s3']
}

/** The store in which several workers keep the files of their runs; undefined if those are in the data folder. */
export const sharedFiles = (places: RunPlaces): FileStore | undefined =>
  places.state.database === undefined ? undefined : openFiles(places)

const pathsOf = (run: string) => runRooms.map((room) => `${room}/${toFileName(run)}`)

/** The report and the page of an export, relative to the data folder. */
const reportsOf = (run: string) =>
  (['.json', '.html'] as const).map((ending) => posix.join(reportFile({ dataDir: '', run, ending })))

/** Whether several workers keep files of a run of this name. */
async function isRunKept(store: FileStore, run: string): Promise<boolean> {
  for (const path of pathsOf(run)) if (await isKept(store, path)) return true
  const [report = ''] = reportsOf(run)
  return (await store.read(report)) !== undefined
}

/** What only a worker needs. */
const onlyForWorkers: ReadonlySet<string> = new Set([
  runFiles.stagedChanges,
  runFiles.decidedChanges,
  runFiles.claims,
])

/** What this machine notes for itself. */
const ofThisMachine: ReadonlySet<string> = new Set([runFiles.shown, runFiles.origin])

/** Makes the data folder have the input of an import that is kept for workers on other machines. */
export async function fetchInput(places: RunPlaces, input: StoredInput): Promise<void> {
  const store = sharedFiles(places)
  if (store === undefined) return
  const { dataDir } = places
  const fetch = (path: string) => fetchFile({ store, path, to: join(dataDir, path) })
  await fetch(input.mapping)
  // Loaded late: only an import needs what reads a file of rows.
  const { filesOf } = await import('../../core/imports/stored-input.ts')
  for (const path of await filesOf({ dataDir, ...input })) await fetch(path)
}

/** Makes the data folder have the files of a run that workers on other machines have kept: of an export, its report. */
export async function fetchRun(places: RunPlaces, run: string): Promise<void> {
  const store = sharedFiles(places)
  if (store === undefined) return
  for (const path of pathsOf(run)) {
    const to = join(places.dataDir, path)
    const endOf = () => orMissing(readFile(join(to, runFiles.ended), 'utf8'))
    const before = await endOf()
    await checkOut({ store, path, to, only: (name) => !onlyForWorkers.has(name), ignored: ofThisMachine })
    // The run has ended once more, and that report was not shown.
    if ((await endOf()) !== before) await rm(join(to, runFiles.shown), { force: true })
  }
  for (const path of reportsOf(run)) await fetchFile({ store, path, to: join(places.dataDir, path) })
}

interface Run {
  dataDir: string
  run: string
}

export const importFolder = ({ dataDir, run }: Run): string => join(dataDir, 'imports', toFileName(run))

export const recoveryFolder = ({ dataDir, run }: Run): string => join(dataDir, 'recoveries', toFileName(run))

export async function planOf(settings: Settings, run: string): Promise<ImportPlan | undefined> {
  await fetchRun(settings, run)
  return await readPlan(importFolder({ dataDir: settings.dataDir, run }))
}

export async function savedRecovery(settings: Settings, run: string): Promise<SavedPlan | undefined> {
  await fetchRun(settings, run)
  return await readSavedPlan(recoveryFolder({ dataDir: settings.dataDir, run }))
}

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
}): Promise<string> {
  const { places, run, terminal } = options
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

const isInFolder = (run: Run): boolean =>
  [
    importFolder(run),
    recoveryFolder(run),
    join(run.dataDir, 'parts', toFileName(run.run)),
    reportFile({ ...run, ending: '.json' }),
  ].some((path) => existsSync(path))

/** Opens the state to read it alone. */
export async function openToRead(place: StatePlace): Promise<State & AsyncDisposable> {
  const state = await openState({ ...place, readOnly: true })
  return Object.assign(state, { [Symbol.asyncDispose]: () => state.close() })
}
