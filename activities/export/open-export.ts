import { checkFilters } from '../../core/billing/resources/filters.ts'
import { listResources, listNames } from '../../core/billing/resources/lists.ts'
import { exportInput } from '../../core/exports/input.ts'
import { parseInput } from '../../core/runs/parse-input.ts'
import { type ExportPlan, leasesOf, mostParallel, savePlan } from '../../core/exports/plan.ts'
import { startPlan } from '../../core/exports/start-plan.ts'
import { toSeenClaims, toSince } from '../../core/exports/watermark.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import { checkPrivacy } from '../../core/tables/privacy.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/**
 * Checks everything about an export that can be checked before it begins (input, identity, token and workspace) and
 * takes the lease of each resource and destination.
 */
export function createOpenExport(deps: ActivityDeps) {
  return async function openExport(
    { owner: execution, scheduledAt: startedAt, signal, takeLeases, watch }: StepContext,
    input: unknown,
    scheduled?: { scheduledFor: string },
  ): Promise<Opened<ExportPlan>> {
    const asked = parseInput({ schema: exportInput, input, taker: 'an export' })
    const resources = [...new Set(asked.resources ?? listNames)]
    const {
      exclude = [],
      hash = [],
      filters = {},
      maxDeletes,
      maxPages,
      parallel = Math.min(deps.concurrency, mostParallel),
    } = asked
    for (const name of resources) checkFilters({ resource: listResources[name], filters })
    checkPrivacy(Object.values(listResources), { exclude, hash, hashKey: deps.hashKey })
    const started = await startPlan({ deps, asked, resources, execution, startedAt })
    const plan: ExportPlan = { ...started, filters, maxDeletes, maxPages, parallel, ...scheduled }
    const first = listResources[resources[0] ?? 'customers']
    // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
    const { servedAt } = await watch(deps.billing).list({
      resource: first,
      page: 1,
      pageSize: 1,
      tries: 1,
      signal,
    })
    plan.servedAt = servedAt
    await takeLeases(leasesOf(plan))
    const { lookbackSeconds } = asked
    plan.seenClaims = await toSeenClaims({ deps, plan, lists: resources })
    if (asked.mode === 'incremental')
      Object.assign(plan, await toSince({ deps, plan, lists: resources, lookbackSeconds }))
    return await toOpened(deps, await savePlan({ ...deps, plan }))
  }
}
