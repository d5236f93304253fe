import { cancellationSignal } from '@temporalio/activity'
import { checkFilters } from '../../core/billing/resources/filters.ts'
import { listResources } from '../../core/billing/resources/lists.ts'
import { listNames } from '../../core/billing/resources/resource.ts'
import { checkPrivacy } from '../../core/tables/privacy.ts'
import { claimExports } from '../leases.ts'
import type { ActivityDeps } from '../deps.ts'
import type { ExportPlan } from '../../core/exports/plan.ts'
import { exportInput, parseInput } from '../../core/exports/input.ts'
import { type Opened, toOpened } from '../opened.ts'
import { startPlan } from './start-plan.ts'
import { savePlan } from '../../core/exports/saved-plan.ts'
import { toSince } from '../../core/exports/watermark.ts'

/**
 * Checks everything about an export that can be known before it begins (input, identity, the service's answer to
 * this token and workspace) and claims each resource and destination for this run.
 */
export function createOpenExport(deps: ActivityDeps) {
  return async function openExport(
    input: unknown,
    scheduled?: { scheduledFor: string },
  ): Promise<Opened<ExportPlan>> {
    const asked = parseInput({ schema: exportInput, input, what: 'an export' })
    const resources = [...new Set(asked.resources ?? listNames)]
    const { exclude = [], hash = [], filters = {}, maxDeletes, maxPages } = asked
    for (const name of resources) checkFilters({ resource: listResources[name], filters })
    checkPrivacy(Object.values(listResources), { exclude, hash, hashKey: deps.hashKey })
    const plan = { ...(await startPlan({ deps, asked, resources })), filters, maxDeletes, maxPages }
    plan.scheduledFor = scheduled?.scheduledFor
    const first = listResources[resources[0] ?? 'customers']
    // Temporal tries again, and shows meanwhile why: the client's own patience would hide it for minutes.
    const look = { resource: first, page: 1, pageSize: 1, tries: 1, signal: cancellationSignal() }
    plan.servedAt = (await deps.billing.list(look)).servedAt
    await claimExports({ deps, plan })
    if (asked.mode === 'incremental')
      plan.since = await toSince({ deps, plan, lists: resources, lookbackSeconds: asked.lookbackSeconds })
    await savePlan({ dataDir: deps.dataDir, plan })
    return await toOpened(deps, plan)
  }
}
