import { join } from 'node:path'
import { toFileName } from '../../core/storage/file-name.ts'
import { readSavedPlan, type SavedPlan } from '../../core/recoveries/run-files.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { type WorkflowHandle } from '@temporalio/client'
import type { recoverSubscriptions } from '../../workflows/recover-subscriptions.ts'

export const recoveryFolder = ({ dataDir, run }: { dataDir: string; run: string }): string =>
  join(dataDir, 'recoveries', toFileName(run))

export const savedRecovery = (settings: Settings, run: string): Promise<SavedPlan | undefined> =>
  readSavedPlan(recoveryFolder({ dataDir: settings.dataDir, run }))

export type RecoveryHandle = WorkflowHandle<typeof recoverSubscriptions>
