import { readFile, rm } from 'node:fs/promises'
import { join, posix } from 'node:path'
import { reportFile } from '../../core/exports/report.ts'
import type { StoredInput } from '../../core/imports/stored-input.ts'
import { runFiles } from '../../core/imports/input.ts'
import { runRooms } from '../../core/runs/step-folder.ts'
import type { StatePlace } from '../../core/state/open.ts'
import { toFileName } from '../../core/storage/file-name.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { checkOut, fetchFile, isKept } from '../../core/storage/kept-folder.ts'
import { orMissing } from '../../core/storage/system-errors.ts'
import { openFiles } from '../../worker/files.ts'
import type { Settings } from '../../worker/settings/settings.ts'

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
export async function isRunKept(store: FileStore, run: string): Promise<boolean> {
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
