import { activityInfo } from '@temporalio/activity'
import { z } from 'zod'
import { allowedRoot } from '../destinations/allowed-root.ts'
import type { ResourceName } from '../billing/resources/all-resources.ts'
import { ownerOf } from './claims.ts'
import type { ActivityDeps } from './deps.ts'
import { InvalidInput } from './errors.ts'
import { destinationNames, refuseMissing, refuseOther, type ExportPlan } from './export-plan.ts'
import { kindsFor } from './notice.ts'
import { nameRun } from './run-name.ts'

export const schemaInput = z.string().regex(/^[a-z_][a-z0-9_]{0,62}$/, 'is no plain name in lower case')

/** How many records a warehouse may mark as deleted; without it a tenth, at least 10. */
export const maxDeletesInput = z.union([z.int().min(0), z.literal('all')])

/** What may be said anew when kept parts are published again; without it what the export was given. */
export const publishAgainFields = {
  to: z.array(z.enum(destinationNames)).min(1).optional(),
  maxDeletes: maxDeletesInput.optional(),
  /** The schema in PostgreSQL. */
  schema: schemaInput.optional(),
}
export type PublishAgain = z.output<z.ZodObject<typeof publishAgainFields>>

/** The fields that every run takes which publishes what it reads. */
export const publishingFields = {
  to: z.array(z.enum(destinationNames)).min(1).optional(),
  /** The schema in PostgreSQL. */
  schema: schemaInput.optional(),
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
}
const publishing = z.object(publishingFields)

/** Reads a run's input, or says in one sentence all that is wrong with it. `what` as in `an export`. */
export function parseInput<S extends z.ZodObject>(of: {
  schema: S
  input: unknown
  what: string
}): z.output<S> {
  const { schema, input, what } = of
  const parsed = schema.safeParse(input)
  if (parsed.success) return parsed.data
  const allowed = Object.keys(schema.shape).join(', ')
  const problems = parsed.error.issues.map((issue) => `${issue.path.join('.') || 'input'}: ${issue.message}`)
  throw new InvalidInput(
    `The input is not one ${what} takes: ${problems.join('; ')}. Its fields are ${allowed}.`,
  )
}

/** A run's plan as far as it follows from those fields; nothing has been asked of the service yet. */
export async function startPlan(of: {
  deps: ActivityDeps
  asked: z.output<typeof publishing>
  resources: ResourceName[]
}): Promise<ExportPlan> {
  const { deps, asked, resources } = of
  const { identity, to = ['csv'], exclude = [], hash = [], out } = asked
  if (identity !== undefined) refuseOther({ run: identity, worker: deps.identity })
  for (const name of to) refuseMissing({ deps, name })
  return {
    run: await nameRun({ dataDir: deps.dataDir, execution: ownerOf() }),
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
    notifies: kindsFor(deps.receivers),
    marks: await deps.marks(),
  }
}
