import { appendFile, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Command } from 'commander'
import { z } from 'zod'
import { type ListName, listNames } from '../../core/billing/resources/lists.ts'
import { type DestinationName, destinationNames } from '../../core/destinations/names.ts'
import { formatCount, formatCountOf, formatLocalTime, formatTable } from '../../core/runs/view/format.ts'
import { acquireLock } from '../../core/state/data-folder-lock.ts'
import { openState, type StatePlace } from '../../core/state/open.ts'
import type { Publication } from '../../core/state/publications.ts'
import { RefusedError } from '../terminal/failures.ts'
import { askState, sharedFiles } from '../runs/run-files.ts'
import type { Terminal } from '../terminal/terminal.ts'
import {
  addDecision,
  addExamples,
  addInputArgument,
  addInputOptions,
  decisionOf,
  type DecisionOptions,
  processPlaces,
} from './options.ts'
import { connector } from '../../core/runs/view/shell.ts'
import { claimsAtRepair, type RepairedRun, repairLedger } from '../../core/changes/old-ledger.ts'
import { fetchChanges, readCheckpoints } from '../../core/changes/staged-changes.ts'
import { reopenImport } from '../../core/imports/close.ts'
import { fetchInput } from '../../core/imports/stored-input.ts'
import { sameCommand } from '../../core/imports/view.ts'
import type { ImportNotes } from '../../core/imports/run-files.ts'
import type { RecoveryNotes } from '../../core/recoveries/open.ts'
import { createRunNotes, type RunNotes } from '../../core/runs/run-notes.ts'
import { sharedMark } from '../../core/state/claims-mark.ts'
import type { Ledger } from '../../core/state/ledger/ledger.ts'
import { bindFiles, refuseWorkers, withoutWorkers } from '../../core/state/postgres/membership.ts'
import { cached, type SharedFolder } from '../../core/storage/cached.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { createFolderStore } from '../../core/storage/folder-store.ts'
import { findOwner } from '../../core/storage/prove-store.ts'
import { bindBucket } from '../../worker/files.ts'

export function configureShow(command: Command, terminal: Terminal): void {
  command.action(async () => show(terminal))
  addExamples(command, 'inspect', { 'state show': 'how far each incremental export has read' })
}

const resetInput = z.object({
  resource: z.enum(listNames).meta({ help: 'the list' }),
  to: z
    .enum(destinationNames)
    .optional()
    .meta({ flag: '--to <destination>', help: 'only of this destination', otherwise: 'all' }),
})

type ResetOptions = DecisionOptions & { to?: DestinationName }

export function configureReset(command: Command, terminal: Terminal): void {
  addInputArgument(command, resetInput, '<resource>')
  addDecision(addInputOptions(command, resetInput)).action(
    async (resource: ListName, options: ResetOptions) => reset({ resource, options, terminal }),
  )
  addExamples(command, 'inspect', {
    'state reset customers --to duckdb --why "the warehouse was restored"':
      'the next incremental export reads the whole list',
  })
}

/** Moves the state of the data folder to PostgreSQL. */
export function configureMove(command: Command, terminal: Terminal): void {
  command.action(async () => {
    const places = processPlaces()
    const { folder, database } = places.state
    // The settings name no database without a bucket.
    const files = sharedFiles(places)
    if (database === undefined || files === undefined)
      throw new RefusedError('CONNECTOR_STATE_URL is not set: it names the database to move the state to.', {
        hint: 'Set it to postgres://user:password@host/database, here and for the worker.',
      })
    const lock = acquireLock({ folder, role: 'state move' })
    try {
      // Loaded late: only this command needs the driver of PostgreSQL.
      const { moveState } = await import('../../core/state/move-state.ts')
      const { to, changes } = await moveState({ folder, database })
      const copied = await copyRuns({ place: places.state, files })
      terminal.result({
        document: { to, changes, files: copied },
        text: `Moved the state to ${to}: ${formatCountOf(changes, 'changes')}, with ${formatCountOf(copied, 'files')} of earlier runs. Start the workers with CONNECTOR_STATE_URL and CONNECTOR_FILES_URL; state.db stays as it was and is no longer used.`,
      })
    } finally {
      lock.release()
    }
  })
  addExamples(command, 'run', {
    'state move': 'with CONNECTOR_STATE_URL and CONNECTOR_FILES_URL set, no run open and no worker running',
  })
}

/**
 * Copies what runs have left in the data folder to the bucket, unless it has that: a repair stages their rows again from
 * there, and reports are written from it.
 */
async function copyRuns({ place, files }: { place: StatePlace; files: FileStore }): Promise<number> {
  const state = await openState(place)
  try {
    await bindBucket(files, state)
  } finally {
    await state.close()
  }
  const own = createFolderStore(place.folder)
  let copied = 0
  for (const room of ['imports', 'recoveries', 'exports/reports']) {
    const there = new Set((await files.list(room)).map(({ path }) => path))
    for (const { path } of await own.list(room)) {
      if (there.has(path)) continue
      await files.put(path, own.locate(path))
      copied += 1
    }
  }
  return copied
}

export function configureRepair(command: Command, terminal: Terminal): void {
  command
    .option('--files-lost', 'the bucket with the files is lost, too: use that of the settings from now on')
    .action(async ({ filesLost = false }: { filesLost?: boolean }) => repair({ filesLost, terminal }))
  addExamples(command, 'inspect', {
    'state repair': 'state.db, PostgreSQL or more was restored from a backup',
  })
}

async function show(terminal: Terminal): Promise<void> {
  const published = await askState(processPlaces().state, (state) => state.publications.all())
  const watermarks = toWatermarks(published ?? [])
  const rows = watermarks.map(({ resource, destination, location, service, only, readUpTo, run }) => [
    resource,
    location === '' ? destination : `${destination} ${location}`,
    service,
    only,
    formatLocalTime(readUpTo),
    run,
  ])
  const head = ['resource', 'destination', 'service', 'only', 'read up to', 'run']
  const none = 'No watermarks: every incremental export reads the whole list.'
  terminal.result({
    document: { watermarks },
    text: rows.length === 0 ? none : formatTable({ head, rows }),
  })
}

/** The publication that brought each series of exports furthest. */
function toWatermarks(published: readonly Publication[]) {
  const furthest = new Map<string, ReturnType<typeof toWatermark>>()
  for (const one of published) {
    if (one.changesThrough === null) continue
    const mark = toWatermark(one, one.changesThrough)
    const { readUpTo, run: _, ...series } = mark
    const key = JSON.stringify(series)
    if (readUpTo >= (furthest.get(key)?.readUpTo ?? '')) furthest.set(key, mark)
  }
  return [...furthest.values()].toSorted((a, b) => (keyOf(a) < keyOf(b) ? -1 : 1))
}

const keyOf = (mark: { resource: string; destination: string }) => `${mark.resource} ${mark.destination}`

function toWatermark(of: Publication, changesThrough: number) {
  const { workspace, resource, destination, location, filters, excluded, hashed, forExcel, run } = of
  const only = [
    ...Object.entries(filters).map(([name, value]) => `${name}=${value}`),
    ...excluded.map((name) => `without ${name}`),
    ...hashed.map((name) => `hashed ${name}`),
    ...(forExcel ? ['for Excel'] : []),
  ].join(', ')
  const mode = of.testMode ? 'test' : 'live'
  const readUpTo = new Date(changesThrough).toISOString()
  return { workspace, mode, resource, destination, location, service: of.baseUrl, only, readUpTo, run }
}

async function reset(call: { resource: ListName; options: ResetOptions; terminal: Terminal }): Promise<void> {
  const { resource, options, terminal } = call
  const { to } = options
  const { why, by } = decisionOf(options)
  const { state: place, dataDir: folder } = processPlaces()
  // Prevents a worker from advancing a watermark in the meantime.
  const lock = acquireLock({ folder, role: 'state reset' })
  const state = await openState({ ...place, isHeld: () => lock.isHeld() })
  const resetAll = async () => {
    const watermarks = toWatermarks(await state.publications.all()).filter(
      (one) => one.resource === resource && (to === undefined || one.destination === to),
    )
    const where = to === undefined ? '' : ` to ${to}`
    if (watermarks.length === 0)
      throw new RefusedError(`There is no watermark of ${resource}${where}.`, {
        hint: `\`${connector`state show`}\` lists them.`,
      })
    const entry = { at: new Date().toISOString(), by, why, watermarks }
    await mkdir(join(folder, 'exports'), { recursive: true })
    await appendFile(join(folder, 'exports', 'watermark-resets.jsonl'), `${JSON.stringify(entry)}\n`)
    await state.publications.forgetChanges({ resource, destination: to })
    terminal.result({
      document: { reset: watermarks, by, why },
      text: `Reset ${watermarks.length} of ${resource}${where}; the next incremental export reads the whole list.`,
    })
  }
  try {
    // The lock of the data folder keeps only its own worker away.
    await withoutWorkers(state.shared, resetAll)
  } finally {
    await state.close()
    lock.release()
  }
}

async function repair({ filesLost, terminal }: { filesLost: boolean; terminal: Terminal }): Promise<void> {
  const places = processPlaces()
  const lock = acquireLock({ folder: places.dataDir, role: 'state repair' })
  try {
    const runs = await repairState({ place: places.state, files: sharedFiles(places), bindsFiles: filesLost })
    const lines = runs.flatMap(({ run, restaged, unknown, resume }) => [
      `${run}: ${formatCountOf(restaged, 'rows')} staged again as unknown, ${formatCount(unknown)} more unknown`,
      ...(resume === undefined ? [] : [`Next: start the worker, then: ${resume}`]),
    ])
    terminal.result({
      document: { runs },
      text: lines.join('\n') || 'Nothing is open: no run can have sent more since the backup.',
    })
  } finally {
    lock.release()
  }
}

/** A repaired run; `resume` looks up what is unknown of an import, also of one that had ended. */
type Repaired = RepairedRun & { resume?: string }

/** Repairs a ledger that was restored from a backup; see `repairLedger`. No worker may run. */
export async function repairState(options: {
  place: StatePlace
  /** The bucket of several workers; undefined if files are in the data folder. */
  files?: FileStore | undefined
  /** Whether the bucket that the state belongs to is lost: it is bound to this one. */
  bindsFiles?: boolean
}): Promise<Repaired[]> {
  const { place, files, bindsFiles = false } = options
  const { folder: dataDir } = place
  if (files !== undefined) await adoptFiles({ place, files })
  const state = await openState({ ...place, isRepair: true })
  const repair = async () => {
    if (bindsFiles && state.shared !== undefined && files !== undefined)
      await bindFiles({ store: state.shared, files: await bindBucket(files, state), isFree: false })
    const shared = cached(dataDir, files)
    const { ledger, mark = sharedMark({ shared, dataDir }) } = state
    const notes = createRunNotes(state)
    await state.leases.forgetAll()
    const runs = await stagedRuns({ notes, shared, dataDir })
    for (const run of runs.keys()) {
      const { plan, ended, atRepair } = await notes.read<RecoveryNotes>(run)
      // A repair that is repeated has nothing left to count.
      if (plan?.job === 'recovery' && ended === undefined && atRepair === undefined)
        await notes.write(run, { atRepair: await claimsAtRepair({ ledger, mark, run }) })
    }
    const repaired = await repairLedger({ ledger, mark, folders: [...runs.values()] })
    const reopened = await reopen({ ledger, notes, shared, dataDir, runs: runs.keys() })
    return repaired.map((one) => ({ ...one, ...reopened.get(one.run) }))
  }
  try {
    return await withoutWorkers(state.shared, repair)
  } finally {
    await state.close()
  }
}

/**
 * Gives a new state in the place of a lost one, which no worker has used, the id of that: the bucket and the open runs know
 * it by it.
 */
async function adoptFiles({ place, files }: { place: StatePlace; files: FileStore }): Promise<void> {
  const owner = await findOwner(files)
  const state = await openState({ ...place, isRepair: true })
  try {
    // The lock of the data folder keeps only its own worker away.
    if (state.shared !== undefined) await refuseWorkers(state.shared)
    if (owner !== undefined && owner.place === state.shared?.place)
      await state.shared.db.updateTable('store').set({ id: owner.state }).where('files', 'is', null).execute()
  } finally {
    await state.close()
  }
}

/**
 * The runs that had staged all of their changes, and the folders of these; until then, a run has sent nothing. The state
 * gets back what it has lost of them.
 */
async function stagedRuns(of: { notes: RunNotes; shared: SharedFolder; dataDir: string }) {
  const { notes, shared, dataDir } = of
  const folders = new Map<string, string>()
  for (const room of ['imports', 'recoveries'])
    for (const { run, folder, notes: kept } of await readCheckpoints(shared, join(dataDir, room))) {
      await fetchChanges(shared, folder)
      folders.set(run, folder)
      const known = await notes.read<Record<string, unknown>>(run)
      const lost = Object.entries(kept).filter(([name]) => known[name] === undefined)
      await notes.write(run, Object.fromEntries(lost))
    }
  return folders
}

/** Lets the same command resume the imports that have rows in doubt, also those of an interrupted repair. */
async function reopen(of: {
  ledger: Ledger
  notes: RunNotes
  shared: SharedFolder
  dataDir: string
  runs: Iterable<string>
}) {
  const { ledger, notes, shared, dataDir } = of
  const reopened = new Map<string, { resume: string }>()
  for (const run of of.runs) {
    const { plan, ended } = await notes.read<ImportNotes>(run)
    if (plan?.job !== 'import') continue
    if ((await ledger.page({ run, state: 'unknown', outcome: 'restored', limit: 1 })).length === 0) continue
    if (ended?.how === 'finished') await reopenImport(notes, run, ended)
    // The command names the run's own copy of its input.
    await fetchInput({ ...plan, dataDir, shared })
    reopened.set(run, { resume: sameCommand({ plan, dataDir }) })
  }
  return reopened
}
