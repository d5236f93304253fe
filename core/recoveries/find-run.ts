import { relative } from 'node:path'
import { type Identity, refuseOther } from '../runs/identity.ts'
import { runFolder } from '../runs/known-run.ts'
import type { RecoveryPlan } from './plan.ts'
import { readSavedPlan } from './run-files.ts'

/**
 * Loads the plan of a recovery; undefined if the data folder has no such run.
 *
 * @throws {WrongWorker} the run belongs to another service, workspace or mode
 */
export async function findRecovery(
  { dataDir, identity }: { dataDir: string; identity: Identity },
  run: string,
): Promise<RecoveryPlan | undefined> {
  const folder = await runFolder({ dataDir, room: 'recoveries', run })
  const saved = folder === undefined ? undefined : await readSavedPlan(folder)
  if (folder === undefined || saved?.plan.run !== run) return undefined
  if (saved.plan.folder !== relative(dataDir, folder)) return undefined
  refuseOther({ run: saved.plan.identity, worker: identity })
  return saved.plan
}
