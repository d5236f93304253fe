import { utimes } from 'node:fs/promises'
import { latestCheckpoint } from '../../core/exports/parts/checkpoint.ts'
import { claimExports, ownerOf } from '../leases.ts'
import type { ActivityDeps } from '../deps.ts'
import { InvalidInput } from '../../core/runs/errors.ts'
import { refuseOther } from '../../core/runs/identity.ts'
import { refuseMissing, type ExportPlan } from '../../core/exports/plan.ts'
import { type Opened, toOpened } from '../opened.ts'
import { markPublishing, takeTurn } from '../../core/exports/parts/publish-record.ts'
import { publishAgainInput } from '../../core/exports/input.ts'
import { partsFolder } from '../../core/exports/parts/read-folder.ts'
import { loadPlan } from '../../core/exports/saved-plan.ts'

export interface OpenedPublish {
  plan: Opened<ExportPlan>
  checkpoints: { resource: ExportPlan['resources'][number]; checkpoint: string }[]
}

/** Finds what an earlier export has read to its end, and claims its resources and the destinations for this run. */
export function createOpenPublish(deps: ActivityDeps) {
  return async function openPublish(input: unknown): Promise<OpenedPublish> {
    const parsed = publishAgainInput.safeParse(input)
    if (!parsed.success) {
      throw new InvalidInput(
        'Publishing again takes {"run": "<an export>", "to": ["csv", ...], "maxDeletes": <a number or "all">,' +
          ' "schema": "<a plain name in lower case>"} and nothing else.',
      )
    }
    const kept = await loadPlan({ dataDir: deps.dataDir, run: parsed.data.run })
    refuseOther({ run: kept.identity, worker: deps.identity })
    const { to = kept.to, maxDeletes = kept.maxDeletes, schema = kept.schema } = parsed.data
    const plan = { ...kept, to: [...new Set(to)], maxDeletes, schema }
    for (const name of plan.to) refuseMissing({ ...deps, name })
    const checkpoints = await takeTurn(deps.dataDir, () => reserve({ dataDir: deps.dataDir, plan }))
    if (checkpoints.length === 0) {
      throw new InvalidInput(`The run ${plan.run} has read no resource to its end. Export again.`)
    }
    const resources = checkpoints.map(({ resource }) => resource)
    const opened = { plan: toOpened(deps, { ...plan, resources }), checkpoints }
    await claimExports({ deps, plan: opened.plan })
    return opened
  }
}

/** What was read to its end, noted as in use: no run may go on from it now, and none prune it. */
async function reserve({ dataDir, plan }: { dataDir: string; plan: ExportPlan }) {
  const found: OpenedPublish['checkpoints'] = []
  for (const resource of plan.resources) {
    const folder = partsFolder({ dataDir, run: plan.run, resource })
    const last = await latestCheckpoint(folder)
    if (last?.outcome === undefined) continue
    await markPublishing(folder, { execution: ownerOf(), asked: plan.to })
    found.push({ resource, checkpoint: last.name })
  }
  const now = new Date()
  // Parts are pruned by the age of the run's folder.
  if (found.length > 0) await utimes(partsFolder({ dataDir, run: plan.run, resource: '' }), now, now)
  return found
}
