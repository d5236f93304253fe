import { join } from 'node:path'
import { type RepairedRun, repairLedger } from '../../core/changes/old-ledger.ts'
import { fetchChanges, readCheckpoints } from '../../core/changes/staged-changes.ts'
import { reopenImport } from '../../core/imports/close.ts'
import { fetchInput } from '../../core/imports/stored-input.ts'
import { sameCommand } from '../../core/imports/view.ts'
import type { ImportNotes } from '../../core/imports/run-files.ts'
import { createRunNotes, type RunNotes } from '../../core/runs/run-notes.ts'
import { sharedMark } from '../../core/state/claims-mark.ts'
import type { Ledger } from '../../core/state/ledger/ledger.ts'
import { openState, type StatePlace } from '../../core/state/open.ts'
import { bindFiles } from '../../core/state/postgres/membership.ts'
import { cached, type SharedFolder } from '../../core/storage/cached.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { bindBucket } from '../../worker/files.ts'

/** A repaired run; `resume` looks up what is unknown of an import, also of one that had ended. */
export type Repaired = RepairedRun & { resume?: string }

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
  const state = await openState({ ...place, isRepair: true })
  try {
    if (bindsFiles && state.shared !== undefined && files !== undefined)
      await bindFiles({ store: state.shared, files: await bindBucket(files, state), isFree: false })
    const shared = cached(dataDir, files)
    const { ledger, mark = sharedMark({ shared, dataDir }) } = state
    const notes = createRunNotes(state)
    await state.leases.forgetAll()
    const runs = await stagedRuns({ notes, shared, dataDir })
    const repaired = await repairLedger({ ledger, mark, folders: [...runs.values()] })
    const reopened = await reopen({ ledger, notes, shared, dataDir, runs: runs.keys() })
    return repaired.map((one) => ({ ...one, ...reopened.get(one.run) }))
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
