import { join } from 'node:path'
import { z } from 'zod'
import { allowedRoot, resolveInside } from '../storage/inside.ts'
import { InvalidInput } from '../runs/errors.ts'
import { type Identity, refuseOther } from '../runs/identity.ts'
import { parseStepInput, runFolder } from '../runs/known-run.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { publishAgainFields } from './input.ts'
import { type ExportPlan, loadPlan } from './plan.ts'

interface Place {
  dataDir: string
  shared: SharedFolder
  /** Absolute paths of the other roots that a run may publish to. */
  outDirs: readonly string[]
  identity: Identity
}

/**
 * Loads the plan of an export or a fetch; undefined if its parts are not kept.
 *
 * @throws {WrongWorker} the run belongs to another service, workspace or mode
 * @throws {FolderOutsideError} the settings no longer allow the folder that the run publishes to
 */
export async function findExport(place: Place, run: string): Promise<ExportPlan | undefined> {
  const { dataDir, shared, identity } = place
  const folder = await runFolder({ dataDir, room: 'parts', run })
  const plan = folder === undefined ? undefined : await loadPlan({ dataDir, shared, run })
  if (folder === undefined || plan?.run !== run) return undefined
  refuseOther({ run: plan.identity, worker: identity })
  if (plan.out !== undefined) await allowedRoot({ ...place, out: plan.out })
  for (const resource of plan.resources)
    if ((await resolveInside({ root: folder, path: join(folder, resource) })) === undefined) return undefined
  return plan
}

/** The fields that the input of an export step may have besides the run's name. */
const exportStep = z.object({
  resource: z.string().optional(),
  range: z.int().min(0).optional(),
  /** Set when kept parts are published again: overrides the export's own destinations and limits. */
  again: z.object(publishAgainFields).optional(),
})

/**
 * Loads the plan as `findExport` does and applies the overrides of one step.
 *
 * @throws {InvalidInput} the step names a resource that the run does not read
 */
export async function findExportStep(
  place: Place,
  { run, input }: { run: string; input: unknown },
): Promise<ExportPlan | undefined> {
  const plan = await findExport(place, run)
  if (plan === undefined) return undefined
  const { resource, again } = parseStepInput(exportStep, input)
  if (resource !== undefined && !plan.resources.some((one) => one === resource))
    throw new InvalidInput(`resource: the run ${run} has no ${JSON.stringify(resource)}.`)
  return { ...plan, ...again, to: again?.to ?? plan.to }
}
