import { join, relative } from 'node:path'
import { type Identity, refuseOther } from '../runs/identity.ts'
import { runFolder } from '../runs/known-run.ts'
import { resolveInside } from '../storage/inside.ts'
import type { ImportPlan } from './plan.ts'
import { readPlan } from './run-files.ts'

/**
 * The plan of an import; undefined if no such run is in the data folder, or if one of its files lies elsewhere.
 *
 * @throws {WrongWorker}
 */
export async function findImport(
  { dataDir, identity }: { dataDir: string; identity: Identity },
  run: string,
): Promise<ImportPlan | undefined> {
  const folder = await runFolder({ dataDir, room: 'imports', run })
  const plan = folder === undefined ? undefined : await readPlan(folder)
  if (folder === undefined || plan?.run !== run || plan.folder !== relative(dataDir, folder)) return undefined
  for (const path of [plan.file, plan.mapping, plan.lines ?? plan.file])
    if ((await resolveInside({ root: folder, path: join(dataDir, path) })) === undefined) return undefined
  refuseOther({ run: plan.identity, worker: identity })
  return plan
}
