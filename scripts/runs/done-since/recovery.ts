import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { recoveryFiles } from '../../../core/recoveries/input.ts'
import { readRecoveryNotes, readSavedPlan } from '../../../core/recoveries/open.ts'
import type { FullReport as FullRecoveryReport } from '../../../core/recoveries/view.ts'
import type { Identity } from '../../../core/runs/identity.ts'
import { readNote } from '../../../core/runs/run-files.ts'
import { orMissing } from '../../../core/storage/system-errors.ts'
import { recoveryFolder } from '../run-folders.ts'
import type { EndedRun, Records } from './ended-run.ts'
import { readRows, areDoneLater } from './rows.ts'

export async function isRecovered(records: Records, { run }: EndedRun): Promise<boolean | undefined> {
  const { dataDir, state } = records
  const folder = recoveryFolder({ dataDir, run })
  const saved = await readSavedPlan(folder)
  if (saved === undefined) return undefined
  const { identity, startedAt, dryRun } = saved.plan
  if (identity.store !== state.storeId) return false
  const { snapshot } = await readRecoveryNotes(folder)
  const rows = dryRun ? undefined : await readRows({ state, run })
  if (snapshot?.proven === true && rows !== undefined && rows.all >= snapshot.staged && rows.inDoubt === 0) {
    const space = { workspace: identity.workspace, mode: identity.mode, kind: 'resume-subscription' }
    const left = [...rows.left, ...rows.parked]
    if (await areDoneLater({ state, space, rows: left, answers: () => true })) return true
  }
  return await hasProvenRecovery({ dataDir, identity, after: Date.parse(startedAt) })
}

/**
 * Whether a later recovery has read everything that needs attention and is proven: what still needs a person is in its
 * report.
 */
async function hasProvenRecovery(of: {
  dataDir: string
  identity: Identity
  after: number
}): Promise<boolean> {
  const { dataDir, identity, after } = of
  const room = join(dataDir, 'recoveries')
  for (const entry of (await orMissing(readdir(room, { withFileTypes: true }))) ?? []) {
    if (!entry.isDirectory()) continue
    const report = await readNote<FullRecoveryReport>(join(room, entry.name, recoveryFiles.report))
    if (report?.verdict !== 'proven' || report.ended?.how !== 'finished' || report.snapshot === null) continue
    const { store, workspace, mode } = report.identity
    const isSame = store === identity.store && workspace === identity.workspace && mode === identity.mode
    const isWhole = Object.values(report.snapshot.leftOut).every((number) => number === 0)
    if (isSame && isWhole && report.snapshot.proven && Date.parse(report.startedAt) > after) return true
  }
  return false
}
