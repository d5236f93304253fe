import type { Command } from 'commander'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ChangeKind } from '../../core/changes/change-kind.ts'
import { resumeSubscription } from '../../core/changes/kinds/resume-subscription.ts'
import { closeGap } from '../../core/changes/restored-ledger.ts'
import { reopenImport } from '../../core/imports/close.ts'
import { sameCommand } from '../../core/imports/view.ts'
import type { ImportPlan } from '../../core/imports/input.ts'
import type { ChangeRun, EndedNote } from '../../core/runs/run-files.ts'
import { takeOver } from '../../core/changes/send/release-rows.ts'
import type { OnKeyHeld } from '../../core/changes/staged-changes.ts'
import { importKinds } from '../../core/imports/kinds.ts'
import { readPlan, readRunNotes } from '../../core/imports/run-files.ts'
import { readRecoveryNotes, readSavedPlan } from '../../core/recoveries/run-files.ts'
import type { Ledger } from '../../core/state/ledger/ledger.ts'
import { openState, type StatePlace } from '../../core/state/open.ts'
import { takeFolderId } from '../../core/state/postgres/folder-id.ts'
import { bindFolder } from '../../core/state/postgres/membership.ts'
import { acquireLock } from '../../core/state/data-folder-lock.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { createStepFolder } from '../../core/runs/step-folder.ts'
import { bindBucket } from '../../worker/files.ts'
import { readPlaces, readStatePlace } from '../../worker/settings/settings.ts'
import { fetchRun, sharedFiles } from '../runs/fetch-run.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

/** A run as described by the files in its folder. */
interface Kept extends ChangeRun {
  kind: ChangeKind
  startedAt: string
  staged: number
  hasEnded: boolean
  /** The run is an import that had ended. */
  finished?: { plan: ImportPlan; ended: EndedNote }
}

interface Fixed {
  run: string
  restaged: number
  unknown: number
}

export function configure(command: Command, terminal: Terminal): void {
  command
    .option(
      '--everything',
      'imports/ and recoveries/ were restored too: everything that open runs have not sent becomes unknown',
    )
    .action(async ({ everything = false }: { everything?: boolean }) => {
      const source = { env: process.env, cwd: process.cwd() }
      const place = readStatePlace(source)
      const places = { ...readPlaces(source), state: place }
      const files = sharedFiles(places)
      const lock = acquireLock({ folder: place.folder, role: 'restored' })
      try {
        const fixed = await fixLedger({ place, everything, files })
        // The next command names the run's own copy of its input.
        for (const { run, resume } of fixed) if (resume !== undefined) await fetchRun(places, run)
        const runs = fixed.map(({ run, restaged, unknown }): Fixed => ({ run, restaged, unknown }))
        const lines = fixed.flatMap(({ run, restaged, unknown, resume }) => [
          `${run}: ${restaged} rows staged again, ${unknown} rows unknown`,
          ...(resume === undefined ? [] : [`Next: start the worker, then: ${resume}`]),
        ])
        terminal.result({
          document: { runs },
          text: lines.join('\n') || 'The ledger has everything that the runs know of.',
        })
      } finally {
        lock.release()
      }
    })
  addExamples(command, 'inspect', {
    restored: 'state.db alone was restored',
    'restored --everything': 'the whole data folder was restored',
  })
}

/** Compares the ledger with the files of every run and repairs it. Requires that no worker is running. */
export async function fixLedger(options: {
  place: StatePlace
  everything: boolean
  /** The bucket of several workers; undefined if files are in the data folder. */
  files?: FileStore | undefined
}) {
  const { place, everything, files } = options
  const state = await openState(place)
  if (everything && state.shared !== undefined) {
    const id = files === undefined ? takeFolderId(place.folder) : await bindBucket(files, state)
    await bindFolder({ store: state.shared, id, isFree: false })
  }
  const { ledger } = state
  const fixed: (Fixed & { resume?: string })[] = []
  const isCopy = files !== undefined
  try {
    await using runs = createStepFolder({ dataDir: place.folder, store: files })
    await runs.fetchRuns()
    for (const kept of await runsInOrder(runs.dataDir)) {
      const { run, folder, identity: space, kind, staged, hasEnded, finished } = kept
      const onHeld = leaveTaken({ ledger, run })
      const held = { ledger, run, folder, space, kind, staged, isCopy, onHeld }
      // The copy of the journal may lack the last claims of a run that was terminated.
      const gap = await closeGap({ ...held, everything: everything || (isCopy && !hasEnded) })
      // The ledger is fixed before the folder is reopened: an earlier call may have done only that.
      const isForgotten = finished !== undefined && (await hasRestored({ ledger, run }))
      if (gap.restaged + gap.unknown === 0 && !isForgotten) continue
      if (finished !== undefined) await reopenImport({ folder, ended: finished.ended })
      fixed.push({
        run,
        ...gap,
        ...(finished && { resume: sameCommand({ plan: finished.plan, dataDir: place.folder }) }),
      })
    }
    await runs.keep()
  } finally {
    await state.close()
  }
  return fixed
}

/** Whether the ledger has changes of a run that a restore left in doubt. */
const hasRestored = async ({ ledger, run }: { ledger: Ledger; run: string }): Promise<boolean> =>
  (await ledger.claimsByRow({ run })).some(
    ({ state, outcome }) => state === 'unknown' && outcome === 'restored',
  )

/**
 * Handles rows whose keys another run holds in the restored ledger. If that run has not sent them, this run took
 * them over after the backup and takes them over again: otherwise both would send them, or neither.
 */
function leaveTaken({ ledger, run }: { ledger: Ledger; run: string }): OnKeyHeld {
  return async (held) => {
    const isUnsent = ({ by }: (typeof held)[number]) => by.state === 'staged'
    await takeOver({ ledger, rows: held.filter(isUnsent).map(({ by }) => by), by: run })
    const left = held.filter((one) => !isUnsent(one))
    return new Map(
      left.map(({ row, by }) => {
        const error = `row ${by.row} of the run ${by.run} has its key`
        return [row, { state: 'dropped', outcome: 'takenOver', error }]
      }),
    )
  }
}

/** Sorts runs by their start, so that rows taken over several times end up with the last run. */
async function runsInOrder(dataDir: string): Promise<Kept[]> {
  const runs = await Array.fromAsync(keptRuns(dataDir))
  return runs.toSorted((one, other) => Date.parse(one.startedAt) - Date.parse(other.startedAt))
}

async function* keptRuns(dataDir: string): AsyncGenerator<Kept> {
  for (const name of await foldersIn(join(dataDir, 'imports'))) {
    const folder = join(dataDir, 'imports', name)
    const plan = await readPlan(folder)
    const { staged, ended } = await readRunNotes(folder)
    if (plan === undefined || staged === undefined || plan.dryRun) continue
    const kind = importKinds[plan.kind].change
    const kept = { ...plan, folder, kind, staged: staged.staged, hasEnded: ended !== undefined }
    yield ended?.how === 'finished' ? { ...kept, finished: { plan, ended } } : kept
  }
  for (const name of await foldersIn(join(dataDir, 'recoveries'))) {
    const folder = join(dataDir, 'recoveries', name)
    const saved = await readSavedPlan(folder)
    const { snapshot, ended } = await readRecoveryNotes(folder)
    if (saved === undefined || snapshot === undefined || saved.plan.dryRun) continue
    const hasEnded = ended !== undefined
    yield { ...saved.plan, folder, kind: resumeSubscription, staged: snapshot.staged, hasEnded }
  }
}

async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return entries.flatMap((entry) => (entry.isDirectory() && !entry.name.startsWith('.') ? [entry.name] : []))
}
