import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type RepairedRun, repairLedger } from '../../core/changes/old-ledger.ts'
import { reopenImport } from '../../core/imports/close.ts'
import { sameCommand } from '../../core/imports/view.ts'
import { runFiles } from '../../core/imports/input.ts'
import { readPlan, readRunNotes } from '../../core/imports/run-files.ts'
import { recoveryFiles } from '../../core/recoveries/input.ts'
import { readNote } from '../../core/runs/run-files.ts'
import { createStepFolder } from '../../core/runs/step-folder.ts'
import { sharedMark } from '../../core/state/claims-mark.ts'
import type { Ledger } from '../../core/state/ledger/ledger.ts'
import { openState, type StatePlace } from '../../core/state/open.ts'
import { bindFiles } from '../../core/state/postgres/membership.ts'
import { cached } from '../../core/storage/cached.ts'
import type { FileStore } from '../../core/storage/file-store.ts'
import { orMissing } from '../../core/storage/system-errors.ts'
import { bindBucket } from '../../worker/files.ts'

/** A repaired run; an import that had ended is reopened, so that `resume` looks up what is unknown. */
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
    await using runs = createStepFolder({ dataDir, store: files })
    await runs.fetchRuns()
    const { ledger, mark = sharedMark({ shared: cached(dataDir, files), dataDir }) } = state
    await state.leases.forgetAll()
    const imports = await stagedRuns(join(runs.dataDir, 'imports'), runFiles.staged)
    const recoveries = await stagedRuns(join(runs.dataDir, 'recoveries'), recoveryFiles.snapshot)
    const repaired = await repairLedger({ ledger, mark, folders: [...imports, ...recoveries] })
    const reopened = await reopen({ ledger, dataDir, imports })
    await runs.keep()
    return repaired.map((one) => ({ ...one, ...reopened.get(one.run) }))
  } finally {
    await state.close()
  }
}

/** The folders of the runs that had staged all of their changes; until then, a run has sent nothing. A dry run stages none. */
async function stagedRuns(room: string, note: string): Promise<string[]> {
  const folders: string[] = []
  for (const name of (await orMissing(readdir(room))) ?? []) {
    const folder = join(room, name)
    const { staged = 0 } = (await readNote<{ staged?: number }>(join(folder, note))) ?? {}
    if (staged > 0) folders.push(folder)
  }
  return folders
}

/** Lets the same command resume the imports that had ended and that have rows in doubt, also those of an interrupted repair. */
async function reopen(options: { ledger: Ledger; dataDir: string; imports: readonly string[] }) {
  const { ledger, dataDir, imports } = options
  const reopened = new Map<string, { resume: string }>()
  for (const folder of imports) {
    const plan = await readPlan(folder)
    const { ended } = await readRunNotes(folder)
    if (plan === undefined || ended?.how !== 'finished') continue
    const inDoubt = { run: plan.run, state: 'unknown', outcome: 'restored', limit: 1 } as const
    if ((await ledger.page(inDoubt)).length === 0) continue
    await reopenImport({ folder, ended })
    reopened.set(plan.run, { resume: sameCommand({ plan, dataDir }) })
  }
  return reopened
}
