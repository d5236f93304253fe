import { activityInfo } from '@temporalio/activity'
import { z } from 'zod'
import { checkFilters } from '../billing/resources/filters.ts'
import { listResources } from '../billing/resources/lists.ts'
import { listNames, type ListName } from '../billing/resources/resource.ts'
import { allowedRoot } from '../destinations/allowed-root.ts'
import { differenceOf, type Identity } from '../state/identity.ts'
import { checkPrivacy } from '../tables/privacy.ts'
import { claimExports, ownerOf } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { kindsFor, type NoticeKind } from './notice.ts'
import { nameRun } from './run-name.ts'
import { savePlan } from './saved-plan.ts'
import { toSince } from './since.ts'
import { InvalidInput, WrongWorker } from './errors.ts'

export const destinationNames = ['csv', 'duckdb', 'parquet', 'postgres'] as const
export type DestinationName = (typeof destinationNames)[number]

/** How many records a warehouse may mark as deleted; without it a tenth, at least 10. */
export const maxDeletesInput = z.union([z.int().min(0), z.literal('all')])

export const schemaInput = z.string().regex(/^[a-z_][a-z0-9_]{0,62}$/, 'is no plain name in lower case')

/** The input of `exportData`: one object, every field of which may be left out, as the Temporal UI sends it. */
const exportInput = z.strictObject({
  resources: z.array(z.enum(listNames)).min(1).optional(),
  to: z.array(z.enum(destinationNames)).min(1).optional(),
  /** `incremental` reads what changed since the last proven export to the same destinations. */
  mode: z.enum(['full', 'incremental']).optional(),
  /** How far behind its watermark an incremental read begins, for records that were committed late. */
  lookbackSeconds: z.number().min(0).optional(),
  /** The schema in PostgreSQL. */
  schema: schemaInput.optional(),
  maxDeletes: maxDeletesInput.optional(),
  /** Filters of the lists (interface, section 4.2); each must be one of every resource asked for. */
  filters: z.record(z.string(), z.string()).optional(),
  /** The most requests that each read may make for its list. A read that is cut short is not proven. */
  maxPages: z.int().min(1).optional(),
  /** This run's share of the process's rate. */
  requestsPerSecond: z.number().positive().optional(),
  forExcel: z.boolean().optional(),
  /** Columns left out (`customers.email`), and columns replaced by a keyed hash. */
  exclude: z.array(z.string()).optional(),
  hash: z.array(z.string()).optional(),
  /** Another root for the published folders: the data folder or one of CONNECTOR_OUT_DIRS. */
  out: z.string().optional(),
  /** Whom the caller believes to act on; refused where the worker serves another. */
  identity: z
    .strictObject({
      workspace: z.string(),
      baseUrl: z.string(),
      mode: z.enum(['live', 'test']),
      store: z.string(),
    })
    .optional(),
})
export type ExportInput = z.input<typeof exportInput>

/** What the run does, settled once at its start; every later step gets it and checks the identity again. */
export interface ExportPlan {
  run: string
  startedAt: string
  /** The Date of a response that came before every list request of this run, in ms. */
  servedAt: number | undefined
  identity: Identity
  resources: ListName[]
  to: DestinationName[]
  /** For each resource that is read incrementally: since when, in ms. */
  since: Partial<Record<ListName, number>>
  schema?: string | undefined
  maxDeletes?: number | 'all' | undefined
  filters: Record<string, string>
  exclude: string[]
  hash: string[]
  forExcel: boolean
  maxPages?: number | undefined
  requestsPerSecond?: number | undefined
  /** Absolute; absent for the data folder's own `exports/`. */
  out?: string | undefined
  /** What the worker's receivers want to hear of (NOTIFY_URL). */
  notifies?: NoticeKind[]
}

/**
 * Checks everything about an export that can be known before it begins (input, identity, the service's answer to
 * this token and workspace) and claims each resource and destination for this run.
 */
export function createOpenExport(deps: ActivityDeps) {
  return async function openExport(input: unknown): Promise<ExportPlan> {
    const parsed = parseInput(input)
    const { identity, ...rest } = parsed
    if (identity !== undefined) refuseOther({ run: identity, worker: deps.identity })
    const resources = [...new Set(rest.resources ?? listNames)]
    const { exclude = [], hash = [], filters = {} } = rest
    for (const name of resources) checkFilters({ resource: listResources[name], filters })
    checkPrivacy(Object.values(listResources), { exclude, hash, hashKey: deps.hashKey })
    const plan: ExportPlan = {
      run: await nameRun({ dataDir: deps.dataDir, execution: ownerOf() }),
      startedAt: new Date(activityInfo().scheduledTimestampMs).toISOString(),
      servedAt: undefined,
      identity: deps.identity,
      resources,
      to: [...new Set(rest.to ?? ['csv' as const])],
      since: {},
      schema: rest.schema,
      maxDeletes: rest.maxDeletes,
      filters,
      exclude,
      hash,
      forExcel: rest.forExcel ?? false,
      maxPages: rest.maxPages,
      requestsPerSecond: rest.requestsPerSecond,
      out: rest.out === undefined ? undefined : allowedRoot({ ...deps, out: rest.out }),
      notifies: kindsFor(deps.receivers),
    }
    for (const name of plan.to) refuseMissing({ deps, name })
    const first = listResources[resources[0] ?? 'customers']
    // Temporal tries again, and shows meanwhile why: the client's own patience would hide it for minutes.
    const look = { resource: first, page: 1, pageSize: 1, tries: 1 }
    plan.servedAt = (await deps.billing.list(look)).servedAt
    await claimExports({ deps, plan })
    if (rest.mode === 'incremental')
      plan.since = await toSince({ deps, plan, lookbackSeconds: rest.lookbackSeconds })
    await savePlan({ dataDir: deps.dataDir, plan })
    return plan
  }
}

export function refuseOther(identities: { run: Identity; worker: Identity }): void {
  const difference = differenceOf(identities)
  if (difference !== undefined) throw new WrongWorker(difference)
}

function parseInput(input: unknown): z.output<typeof exportInput> {
  const parsed = exportInput.safeParse(input)
  if (parsed.success) return parsed.data
  const allowed = Object.keys(exportInput.shape).join(', ')
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`)
  throw new InvalidInput(
    `The input is not one an export takes: ${problems.join('; ')}. Its fields are ${allowed}.`,
  )
}

export function refuseMissing({ deps, name }: { deps: ActivityDeps; name: DestinationName }): void {
  if (deps.destinations.has(name)) return
  throw new InvalidInput(`This worker has no destination ${name}. For postgres it needs WAREHOUSE_URL.`)
}
