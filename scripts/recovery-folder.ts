import { join } from 'node:path'
import { toFileName } from '../destinations/export-folder.ts'
import { readSavedPlan, type SavedPlan } from '../recoveries/run-notes.ts'
import type { Settings } from '../worker/settings.ts'

export const recoveryFolder = ({ dataDir, run }: { dataDir: string; run: string }): string =>
  join(dataDir, 'recoveries', toFileName(run))

export const savedRecovery = (settings: Settings, run: string): Promise<SavedPlan | undefined> =>
  readSavedPlan(recoveryFolder({ dataDir: settings.dataDir, run }))
