import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { toFileName } from '../../core/storage/file-name.ts'
import { readRecoveryNotes, readSavedPlan, type SavedPlan } from '../../core/recoveries/run-files.ts'
import type { RecoveryInput } from '../../core/recoveries/input.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { type WorkflowHandle } from '@temporalio/client'
import type { recoverSubscriptions } from '../../workflows/recover-subscriptions.ts'

export const recoveryFolder = ({ dataDir, run }: { dataDir: string; run: string }): string =>
  join(dataDir, 'recoveries', toFileName(run))

export const savedRecovery = (settings: Settings, run: string): Promise<SavedPlan | undefined> =>
  readSavedPlan(recoveryFolder({ dataDir: settings.dataDir, run }))

/** The workflow id of a recovery of this input that has not ended, so that the same command goes on with it. */
export async function unfinishedRecovery({
  settings,
  input,
}: {
  settings: Settings
  input: RecoveryInput
}): Promise<string | undefined> {
  const root = join(settings.dataDir, 'recoveries')
  const { workspace, testMode } = settings.billing
  for (const name of (await readdir(root).catch((): string[] => [])).toSorted().toReversed()) {
    const saved = await readSavedPlan(join(root, name))
    if (saved === undefined || toText(saved.asked) !== toText(input)) continue
    const { identity, execution } = saved.plan
    if (identity.workspace !== workspace || (identity.mode === 'test') !== testMode) continue
    const { ended } = await readRecoveryNotes(join(root, name))
    if (ended === undefined) return execution.workflowId
  }
  return undefined
}

const toText = (input: object) =>
  JSON.stringify(Object.entries(input).toSorted(([a], [b]) => (a < b ? -1 : 1)))

export type RecoveryHandle = WorkflowHandle<typeof recoverSubscriptions>
