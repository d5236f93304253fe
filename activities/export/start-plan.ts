import { activityInfo } from '@temporalio/activity'
import type { ResourceName } from '../../core/billing/resources/all-resources.ts'
import { allowedRoot } from '../../core/destinations/allowed-root.ts'
import type { PublishingInput } from '../../core/exports/input.ts'
import { refuseOther } from '../../core/runs/identity.ts'
import { refuseMissing, type ExportPlan } from '../../core/exports/plan.ts'
import { nameExport } from '../../core/exports/name.ts'
import type { ActivityDeps } from '../deps.ts'
import { ownerOf } from '../leases.ts'

/** A run's plan as far as it follows from those fields; nothing has been asked of the service yet. */
export async function startPlan(of: {
  deps: ActivityDeps
  asked: PublishingInput
  resources: ResourceName[]
}): Promise<ExportPlan> {
  const { deps, asked, resources } = of
  const { dataDir } = deps
  const { identity, to = ['csv'], exclude = [], hash = [], out } = asked
  if (identity !== undefined) refuseOther({ run: identity, worker: deps.identity })
  for (const name of to) refuseMissing({ ...deps, name })
  return {
    run: await nameExport({ dataDir, execution: ownerOf() }),
    startedAt: new Date(activityInfo().scheduledTimestampMs).toISOString(),
    servedAt: undefined,
    identity: deps.identity,
    resources,
    to: [...new Set(to)],
    since: {},
    schema: asked.schema,
    filters: {},
    exclude,
    hash,
    forExcel: asked.forExcel ?? false,
    requestsPerSecond: asked.requestsPerSecond,
    out: out === undefined ? undefined : await allowedRoot({ ...deps, out }),
  }
}
