import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { reportFile } from '../../core/exports/report.ts'
import type { ImportPlan } from '../../core/imports/input.ts'
import type { RecoveryPlan } from '../../core/recoveries/input.ts'
import { createRunNotes, type Noted } from '../../core/runs/run-notes.ts'
import { NoStateError } from '../../core/state/errors.ts'
import { openState, type State, type StatePlace } from '../../core/state/open.ts'
import { cached, type SharedFolder } from '../../core/storage/cached.ts'
import { toFileName } from '../../core/storage/file-name.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { openFiles } from '../../worker/files.ts'
import type { Places } from '../../worker/settings/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'

/** Where the files of runs are. */
export type RunPlaces = Omit<Places, 'warehouseUrl'>

/** The store in which several workers keep the files of their runs; undefined if those are in the data folder. */
export const sharedFiles = (places: RunPlaces): FileStore | undefined =>
  places.state.database === undefined ? undefined : openFiles(places)

export const sharedFolder = (places: RunPlaces): SharedFolder => cached(places.dataDir, sharedFiles(places))

/** The report and the page of an export. */
const reportsOf = (of: Run) => (['.json', '.html'] as const).map((ending) => reportFile({ ...of, ending }))

/** Makes the data folder have the files of a run that people read, if workers on other machines have written them. */
export async function fetchRun(places: RunPlaces, run: string): Promise<SharedFolder> {
  const shared = sharedFolder(places)
  if (!shared.isShared) return shared
  const of = { ...places, run }
  for (const folder of [importFolder(of), recoveryFolder(of)])
    for (const name of await shared.list(folder)) await shared.fetch(join(folder, name), { changes: true })
  for (const path of reportsOf(of)) await shared.fetch(path, { changes: true })
  return shared
}

interface Run {
  dataDir: string
  run: string
}

export const importFolder = ({ dataDir, run }: Run): string => join(dataDir, 'imports', toFileName(run))

export const recoveryFolder = ({ dataDir, run }: Run): string => join(dataDir, 'recoveries', toFileName(run))

/** What the state knows of an import or a recovery besides its rows; nothing where there is no state yet. */
export async function notesOf<Known>(
  { state: place }: Pick<RunPlaces, 'state'>,
  run: string,
): Promise<Partial<Noted<Known>>> {
  return (await askState(place, (state) => createRunNotes(state).read<Known>(run))) ?? {}
}

export async function planOf(
  places: Pick<RunPlaces, 'state'>,
  run: string,
): Promise<ImportPlan | RecoveryPlan | undefined> {
  return (await notesOf<{ plan: ImportPlan | RecoveryPlan }>(places, run)).plan
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
  const isThere = async (name: string) =>
    isInFolder({ dataDir: places.dataDir, run: name }) || (await isShared(places, name))
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

/** Whether workers on other machines have a run of this name. */
async function isShared(places: RunPlaces, run: string): Promise<boolean> {
  const shared = sharedFolder(places)
  if (!shared.isShared) return false
  if ((await planOf(places, run)) !== undefined) return true
  const [report = ''] = reportsOf({ ...places, run })
  return (await shared.read(report)) !== undefined
}

/** Opens the state to read it alone. */
export async function openToRead(place: StatePlace): Promise<State & AsyncDisposable> {
  const state = await openState({ ...place, readOnly: true })
  return Object.assign(state, { [Symbol.asyncDispose]: () => state.close() })
}

/** What the state says; undefined where there is none yet: the first worker creates it. */
export async function askState<T>(
  place: StatePlace,
  ask: (state: State) => Promise<T>,
): Promise<T | undefined> {
  try {
    await using state = await openToRead(place)
    return await ask(state)
  } catch (error) {
    if (error instanceof NoStateError) return undefined
    throw error
  }
}
