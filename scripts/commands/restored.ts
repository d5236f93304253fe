import type { Command } from 'commander'
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { ChangeKind } from '../../core/changes/change-kind.ts'
import { resumeSubscription } from '../../core/changes/kinds/resume-subscription.ts'
import { closeGap } from '../../core/changes/restored-ledger.ts'
import { reopenImport } from '../../core/imports/close.ts'
import { sameCommand } from '../../core/imports/next-steps.ts'
import type { ImportPlan } from '../../core/imports/plan.ts'
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
import { readStatePlace } from '../../worker/settings/settings.ts'
import type { Terminal } from '../terminal/terminal.ts'
import { addExamples } from './options.ts'

/** A run as described by the files in its folder. */
interface Kept extends ChangeRun {
  kind: ChangeKind
  startedAt: string
  staged: number
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
      const place = readStatePlace({ env: process.env, cwd: process.cwd() })
      const lock = acquireLock({ folder: place.folder, role: 'restored' })
      try {
        const fixed = await fixLedger({ place, everything })
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
export async function fixLedger({ place, everything }: { place: StatePlace; everything: boolean }) {
  const state = await openState(place)
  if (everything && state.shared !== undefined)
    await bindFolder({ store: state.shared, id: takeFolderId(place.folder), isFree: false })
  const { ledger } = state
  const fixed: (Fixed & { resume?: string })[] = []
  try {
    for (const { run, folder, identity: space, kind, staged, finished } of await runsInOrder(place.folder)) {
      const onHeld = leaveTaken({ ledger, run })
      const held = { ledger, run, folder, space, kind, staged, onHeld }
      const gap = await closeGap({ ...held, everything })
      if (gap.restaged + gap.unknown === 0) continue
      if (finished !== undefined) await reopenImport({ folder, ended: finished.ended })
      fixed.push({
        run,
        ...gap,
        ...(finished && { resume: sameCommand({ plan: finished.plan, dataDir: place.folder }) }),
      })
    }
  } finally {
    await state.close()
  }
  return fixed
}

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
    const kept = { ...plan, folder, kind: importKinds[plan.kind].change, staged: staged.staged }
    yield ended?.how === 'finished' ? { ...kept, finished: { plan, ended } } : kept
  }
  for (const name of await foldersIn(join(dataDir, 'recoveries'))) {
    const folder = join(dataDir, 'recoveries', name)
    const saved = await readSavedPlan(folder)
    const { snapshot } = await readRecoveryNotes(folder)
    if (saved === undefined || snapshot === undefined || saved.plan.dryRun) continue
    yield { ...saved.plan, folder, kind: resumeSubscription, staged: snapshot.staged }
  }
}

async function foldersIn(path: string): Promise<string[]> {
  const entries = await readdir(path, { withFileTypes: true }).catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return []
    throw error
  })
  return entries.flatMap((entry) => (entry.isDirectory() && !entry.name.startsWith('.') ? [entry.name] : []))
}
