import { join } from 'node:path'
import { z } from 'zod'
import { allowedRoot } from '../destinations/allowed-root.ts'
import { InvalidInput } from '../runs/errors.ts'
import { type Identity, refuseOther } from '../runs/identity.ts'
import { parseStepInput, runFolder } from '../runs/known-run.ts'
import { resolveInside } from '../storage/inside.ts'
import { publishAgainFields } from './input.ts'
import type { ExportPlan } from './plan.ts'
import { loadPlan } from './saved-plan.ts'

interface Place {
  dataDir: string
  /** Other roots that a run may publish to, absolute. */
  outDirs: readonly string[]
  identity: Identity
}

/**
 * The plan of an export or a fetch; undefined if its parts are not kept.
 *
 * @throws {WrongWorker}
 * @throws {FolderOutsideError} the settings no longer allow the folder that it publishes to
 */
export async function findExport(place: Place, run: string): Promise<ExportPlan | undefined> {
  const { dataDir, identity } = place
  const folder = await runFolder({ dataDir, room: 'parts', run })
  const plan = folder === undefined ? undefined : await loadPlan({ dataDir, run })
  if (folder === undefined || plan?.run !== run) return undefined
  refuseOther({ run: plan.identity, worker: identity })
  if (plan.out !== undefined) await allowedRoot({ ...place, out: plan.out })
  for (const resource of plan.resources)
    if ((await resolveInside({ root: folder, path: join(folder, resource) })) === undefined) return undefined
  return plan
}

/** What the input of a step of an export may hold besides the run's name. */
const exportStep = z.object({
  resource: z.string().optional(),
  /** Parts are published again, elsewhere or with other bounds than the export was given. */
  again: z.object(publishAgainFields).optional(),
})

/**
 * As `findExport`, with what one step of it was told to do differently.
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
