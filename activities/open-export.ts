import { cancellationSignal } from '@temporalio/activity'
import { z } from 'zod'
import { checkFilters } from '../billing/resources/filters.ts'
import { listResources } from '../billing/resources/lists.ts'
import { listNames } from '../billing/resources/resource.ts'
import { checkPrivacy } from '../tables/privacy.ts'
import { claimExports } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import type { ExportPlan } from './export-plan.ts'
import { maxDeletesInput, parseInput, publishingFields, startPlan } from './publishing-input.ts'
import { savePlan } from './saved-plan.ts'
import { toSince } from './since.ts'

const { to, schema, ...otherFields } = publishingFields

/** The input of `exportData`: one object, every field of which may be left out, as the Temporal UI sends it. */
export const exportInput = z.strictObject({
  resources: z.array(z.enum(listNames)).min(1).optional(),
  to,
  /** `incremental` reads what changed since the last proven export to the same destinations. */
  mode: z.enum(['full', 'incremental']).optional(),
  /** How far behind its watermark an incremental read begins, for records that were committed late. */
  lookbackSeconds: z.number().min(0).optional(),
  schema,
  maxDeletes: maxDeletesInput.optional(),
  /** Filters of the lists (interface, section 4.2); each must be one of every resource asked for. */
  filters: z.record(z.string(), z.string()).optional(),
  /** The most requests that each read may make for its list. A read that is cut short is not proven. */
  maxPages: z.int().min(1).optional(),
  ...otherFields,
})
export type ExportInput = z.input<typeof exportInput>

/**
 * Checks everything about an export that can be known before it begins (input, identity, the service's answer to
 * this token and workspace) and claims each resource and destination for this run.
 */
export function createOpenExport(deps: ActivityDeps) {
  return async function openExport(
    input: unknown,
    scheduled?: { scheduledFor: string },
  ): Promise<ExportPlan> {
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
    return plan
  }
}
