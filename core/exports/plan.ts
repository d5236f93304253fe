import { createHmac } from 'node:crypto'
import { join } from 'node:path'
import { z } from 'zod'
import { allResources, type ResourceName } from '../billing/resources/lists.ts'
import type { Destination, ValueForm } from '../destinations/destination.ts'
import { NotAdmittedError } from '../destinations/errors.ts'
import type { DestinationName } from '../destinations/names.ts'
import { InvalidInput } from '../runs/errors.ts'
import { type Identity, refuseOther } from '../runs/identity.ts'
import { parseStepInput, runFolder } from '../runs/known-run.ts'
import { type Execution, nameRun } from '../runs/name.ts'
import type { State } from '../state/open.ts'
import type { PublishedState } from '../state/publications.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { toFileName } from '../storage/file-name.ts'
import type { FileStore } from '../storage/file-store.ts'
import { allowedRoot, resolveInside } from '../storage/inside.ts'
import { toFields } from '../tables/privacy.ts'
import { type exportInput, publishAgainFields, type PublishingInput } from './input.ts'
import { foldersReported } from './report.ts'
import type { RequestedIds } from './requested-ids.ts'

/**
 * The lists that a run reads and where it publishes them, fixed at its start. Every later step loads it and checks the identity
 * again.
 */
export interface ExportPlan extends Pick<
  z.output<typeof exportInput>,
  'schema' | 'maxDeletes' | 'maxPages' | 'requestsPerSecond' | 'parallel'
> {
  run: string
  startedAt: string
  /** The slot of the schedule that started the run (ISO 8601). */
  scheduledFor?: string | undefined
  /** The Date header of a response received before any list request of this run; ms since 1970. */
  servedAt: number | undefined
  identity: Identity
  resources: ResourceName[]
  to: DestinationName[]
  /** The start of each incremental read, ms since 1970. Resources without an entry are read in full. */
  since: Partial<Record<ResourceName, number>>
  /** Why an incremental export reads a list in full that it has read before, as half a sentence. */
  whole?: Partial<Record<ResourceName, string>>
  /** How many of our own changes that no incremental read sees had ended before the run: see `ListResource.unmoved`. */
  seenClaims?: Partial<Record<ResourceName, number>>
  filters: Record<string, string>
  exclude: string[]
  hash: string[]
  forExcel: boolean
  /** Absolute path of the publishing root; absent for the data folder's own `exports/`. */
  out?: string | undefined
  /** The address of the store that files are published to; absent for a folder. */
  files?: string | undefined
  /** Set for a fetch only: what it reads. Never part of a workflow's history. */
  requested?: RequestedIds | undefined
}

/**
 * When a run was started, by Temporal's clock, as scheduled slots are: a worker's clock may be wrong. A run of a schedule
 * begins at its slot, even where two of Temporal's hosts differ.
 */
export const begunAtOf = ({ startedAt, scheduledFor = startedAt }: ExportPlan): string =>
  new Date(Math.max(Date.parse(startedAt), Date.parse(scheduledFor))).toISOString()

/** The leases of a run: only one run at a time exports a resource to a destination. */
export const leasesOf = (plan: Pick<ExportPlan, 'resources' | 'to'>): string[] =>
  plan.resources.flatMap((resource) => plan.to.map((destination) => `export ${resource} to ${destination}`))

interface Folder {
  dataDir: string
  shared: SharedFolder
}

interface Deps extends Folder {
  state: PublishedState & Pick<State, 'now'>
  /** Absolute paths of the other roots that a run may publish to. */
  outDirs: readonly string[]
  identity: Identity
  hashKey: string
  destinations: ReadonlyMap<string, Destination>
  files?: FileStore | undefined
}

/** Builds the part of a run's plan that follows from its input, before the service is contacted. */
export async function startPlan(options: {
  deps: Deps
  asked: PublishingInput
  resources: ResourceName[]
  execution: Execution
  startedAt: string
}): Promise<ExportPlan> {
  const { deps, asked, resources, execution, startedAt } = options
  const { identity, to = ['csv'], exclude = [], hash = [], out } = asked
  if (identity !== undefined) refuseOther({ run: identity, worker: deps.identity })
  refuseTargets(deps, { to, out })
  const plan: ExportPlan = {
    run: await nameExport({ ...deps, execution }),
    startedAt,
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
    files: out === undefined ? deps.files?.locate('') : undefined,
  }
  await refuseUnpublishable({ ...deps, plan })
  return plan
}

/**
 * Names an export or a fetch. A name stays taken after its parts are pruned, because the report and the published
 * data outlive them.
 */
export async function nameExport(
  of: Folder & { state: PublishedState; execution: Execution },
): Promise<string> {
  const published = new Set((await of.state.publications.all()).map(({ run }) => toFileName(run)))
  const taken = published.union(await foldersReported(of))
  return await nameRun({ ...of, taken })
}

/** @throws {InvalidInput} the worker does not have one of the destinations, or its run may be continued by another machine */
export function refuseTargets(
  deps: {
    destinations: ReadonlyMap<string, unknown>
    dataDir: string
    shared: Pick<SharedFolder, 'isShared'>
  },
  { to, out }: { to: readonly DestinationName[]; out?: string | undefined },
): void {
  const { destinations, dataDir, shared } = deps
  const isDuckDb = to.includes('duckdb')
  if (shared.isShared && (isDuckDb || out !== undefined))
    throw new InvalidInput(
      (isDuckDb ? 'to: a DuckDB database is a file' : 'out: a folder') +
        ' of one machine, and this run has workers on several. They publish csv and parquet to the bucket' +
        ' (CONNECTOR_FILES_URL), and to postgres.',
    )
  for (const name of to) {
    // It would look for the write-ahead log of the file in another folder.
    if (name === 'duckdb' && dataDir.includes('?'))
      throw new InvalidInput(
        `to: DuckDB does not write files below ${dataDir}, because of the "?". Set CONNECTOR_DATA_DIR to a folder without it, or publish to parquet, csv or postgres.`,
      )
    if (!destinations.has(name))
      throw new InvalidInput(`This worker has no destination ${name}. For postgres it needs WAREHOUSE_URL.`)
  }
}

/**
 * Rejects a run before it reads if a warehouse would reject what it publishes. One that cannot be asked now is asked when
 * the run publishes.
 * @throws {NotAdmittedError}
 */
export async function refuseUnpublishable(options: {
  plan: ExportPlan
  hashKey: string
  state: Pick<State, 'now'>
  destinations: ReadonlyMap<string, Pick<Destination, 'checkBeforeRead'>>
}): Promise<void> {
  const { plan, hashKey, state, destinations } = options
  const reads = plan.resources.map((resource) =>
    privacyOf({ plan, resource, hashedWith: markOf(plan, hashKey) }),
  )
  const of = { reads, now: state.now() }
  for (const name of plan.to)
    await destinations
      .get(name)
      ?.checkBeforeRead?.(scopeOf(plan), of)
      .catch((error: unknown) => {
        if (error instanceof NotAdmittedError) throw error
      })
}

/** What tells the warehouses of a destination apart. */
export const scopeOf = ({ identity, schema }: Pick<ExportPlan, 'identity' | 'schema'>) => ({
  testMode: identity.mode === 'test',
  ...(schema !== undefined && { schema }),
})

/**
 * Fingerprint of the key that a run hashes with, which it does not reveal; undefined if it hashes nothing. With the same
 * columns and the same fingerprint, two reads write the same values.
 */
export const markOf = ({ hash }: Pick<ExportPlan, 'hash'>, hashKey: string): string | undefined =>
  hash.length === 0 ? undefined : createHmac('sha256', hashKey).update('the key of hashes').digest('hex')

/** How a plan writes the values of one resource. */
export function privacyOf(of: {
  plan: Pick<ExportPlan, 'exclude' | 'hash'>
  resource: ResourceName
  /** The fingerprint of the key that the read hashes with. */
  hashedWith: string | undefined
}): ValueForm {
  const { plan, resource, hashedWith } = of
  const excluded = toFields(allResources[resource], { names: plan.exclude, action: 'exclude' })
  const hashed = toFields(allResources[resource], { names: plan.hash, action: 'hash' })
  return { resource, excluded, hashed, ...(hashed.length > 0 && hashedWith !== undefined && { hashedWith }) }
}

/**
 * The store that a run publishes its files to; undefined for a folder.
 * @throws {InvalidInput} the worker has another one
 */
export function storeOf(
  { files }: { files?: FileStore | undefined },
  plan: Pick<ExportPlan, 'run' | 'files'>,
): FileStore | undefined {
  if (plan.files === undefined) return undefined
  if (files?.locate('') === plan.files) return files
  throw new InvalidInput(
    `The run ${plan.run} publishes to ${plan.files}, and CONNECTOR_FILES_URL of this worker is ${files?.locate('') ?? 'not set'}.` +
      ' Set it to that address and publish the run again, or start a new run.',
  )
}

const planFile = (folder: string) => join(folder, 'plan.json')
export const partsOf = ({ dataDir, run }: { dataDir: string; run: string }) =>
  join(dataDir, 'parts', toFileName(run))

/**
 * Saves the plan beside the parts, so that every step finds it and the parts can be published again. The first attempt
 * to open a run decides: returns the plan that counts.
 */
export async function savePlan({ plan, ...of }: Folder & { plan: ExportPlan }): Promise<ExportPlan> {
  const { run } = plan
  if (await of.shared.create(planFile(partsOf({ ...of, run })), JSON.stringify(plan))) return plan
  return (await loadPlan({ ...of, run })) ?? plan
}

/** Loads the plan; undefined if the parts are not kept. Steps find it through `findExportStep`. */
export const loadPlan = ({ shared, ...of }: Folder & { run: string }): Promise<ExportPlan | undefined> =>
  planIn({ shared, folder: partsOf(of) })

/** The plan of the run whose parts are in a folder. */
export async function planIn({
  shared,
  folder,
}: {
  shared: SharedFolder
  folder: string
}): Promise<ExportPlan | undefined> {
  const text = await shared.read(planFile(folder))
  return text === undefined ? undefined : (JSON.parse(text) as ExportPlan)
}

type Finder = Folder & Pick<Deps, 'outDirs' | 'identity'>

/**
 * Finds the plan of an export or a fetch; undefined if its parts are not kept.
 *
 * @throws {WrongWorker} the run belongs to another service, workspace or mode
 * @throws {FolderOutsideError} the settings no longer allow the folder that the run publishes to
 */
export async function findExport(deps: Finder, run: string): Promise<ExportPlan | undefined> {
  const folder = await runFolder({ ...deps, room: 'parts', run })
  const plan = folder === undefined ? undefined : await planIn({ ...deps, folder })
  if (folder === undefined || plan?.run !== run) return undefined
  refuseOther({ run: plan.identity, worker: deps.identity })
  if (plan.out !== undefined) await allowedRoot({ ...deps, out: plan.out })
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
 * Finds the plan as `findExport` does and applies the overrides of one step.
 *
 * @throws {InvalidInput} the step names a resource that the run does not read
 */
export async function findExportStep(
  deps: Finder,
  { run, input }: { run: string; input: unknown },
): Promise<ExportPlan | undefined> {
  const plan = await findExport(deps, run)
  if (plan === undefined) return undefined
  const { resource, again } = parseStepInput(exportStep, input)
  if (resource !== undefined && !plan.resources.some((one) => one === resource))
    throw new InvalidInput(`resource: the run ${run} has no ${JSON.stringify(resource)}.`)
  return { ...plan, ...again, to: again?.to ?? plan.to }
}
