import type { ImportPlan } from '../../core/imports/input.ts'
import { readPlan } from '../../core/imports/run-files.ts'
import { type SavedPlan, readSavedPlan } from '../../core/recoveries/open.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fetchRun } from './fetch-run.ts'
import { importFolder, recoveryFolder } from './run-folders.ts'

export async function planOf(settings: Settings, run: string): Promise<ImportPlan | undefined> {
  await fetchRun(settings, run)
  return await readPlan(importFolder({ dataDir: settings.dataDir, run }))
}

export async function savedRecovery(settings: Settings, run: string): Promise<SavedPlan | undefined> {
  await fetchRun(settings, run)
  return await readSavedPlan(recoveryFolder({ dataDir: settings.dataDir, run }))
}
