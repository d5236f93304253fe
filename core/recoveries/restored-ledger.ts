import { join } from 'node:path'
import { RunFilesLostError } from '../changes/errors.ts'
import { closeGap, type GapOptions } from '../changes/restored-ledger.ts'
import { resumeSubscription } from '../changes/kinds/resume-subscription.ts'
import { readNote } from '../runs/run-files.ts'
import type { OnKeyHeld } from '../changes/staged-changes.ts'
import { type RecoveryPlan, recoveryFiles } from './plan.ts'
import type { SnapshotNote } from './run-files.ts'
import type { Ledger } from '../state/ledger/ledger.ts'

/**
 * The data that a recovery's ledger is compared with.
 *
 * @throws {RunFilesLostError} the snapshot file is missing
 */
export async function recoveryGap({
  deps,
  plan,
  lookupsOnly = false,
}: {
  deps: { dataDir: string; isCopy: boolean }
  plan: RecoveryPlan
  /** It may have been stopped before its snapshot, and then has staged nothing. */
  lookupsOnly?: boolean | undefined
}): Promise<Pick<GapOptions, 'staged' | 'isCopy' | 'onHeld'>> {
  const path = join(deps.dataDir, plan.folder, recoveryFiles.snapshot)
  const note = await readNote<SnapshotNote>(path)
  if (note === undefined && !lookupsOnly) throw new RunFilesLostError({ path })
  return { staged: note?.staged ?? 0, isCopy: deps.isCopy, onHeld: leaveToNextRecovery }
}

/** Repairs the ledger of a recovery that has taken its snapshot; see `closeGap`. */
export async function closeRecoveryGap({
  deps,
  plan,
}: {
  deps: { ledger: Ledger; dataDir: string; isCopy: boolean }
  plan: RecoveryPlan
}) {
  const { run, identity } = plan
  const folder = join(deps.dataDir, plan.folder)
  const gap = await recoveryGap({ deps, plan })
  const { ledger } = deps
  await closeGap({ ledger, run, space: identity, kind: resumeSubscription, folder, ...gap })
}

/** Leaves a subscription that an earlier recovery has not yet reconciled to the next recovery. */
export const leaveToNextRecovery: OnKeyHeld = async (held) =>
  new Map(
    held.map(({ row, by }) => {
      const error = `row ${by.row} of ${by.run} has it and is ${by.state}: it is looked at again by the next recovery`
      return [row, { state: 'dropped', outcome: 'notTried', error }]
    }),
  )
