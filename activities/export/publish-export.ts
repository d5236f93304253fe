import type { DestinationName } from '../../core/destinations/names.ts'
import { type ExportPlan, leasesOf } from '../../core/exports/plan.ts'
import { isWhole } from '../../core/exports/proven.ts'
import { publishRead } from '../../core/exports/publish.ts'
import type { PublishAgain } from '../../core/exports/input.ts'
import type { PublishedExport } from '../../core/exports/report.ts'
import type { LeaseOwner } from '../../core/state/leases.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface PublishInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  destination: DestinationName
  checkpoint: string
  /** Set when kept parts are published again. */
  again?: PublishAgain
  /** The main run, not its child that publishes one list. */
  owner: LeaseOwner
}

/** Makes a finished read visible in one destination; see `publishRead`. */
export function createPublishExport(deps: ActivityDeps) {
  return async function publishExport(context: StepContext, input: PublishInput): Promise<PublishedExport> {
    const { plan, resource, destination, checkpoint, owner } = input
    const { signal } = context
    await context.takeLeases(leasesOf({ resources: [resource], to: [destination] }), owner)
    context.report(() => ({ resource, destination }))
    const startedAt = performance.now()
    const { published, row } = await publishRead({ deps, plan, resource, destination, checkpoint, signal })
    const { verdict, records } = published
    deps.observer.onEvent({
      type: 'published',
      run: plan.run,
      resource,
      destination,
      verdict,
      records,
      ms: performance.now() - startedAt,
      readAt: Date.parse(row.startedAt),
      whole: isWhole(row),
    })
    return published
  }
}
