import type { ResourceName } from '../billing/resources/lists.ts'
import type { Identity } from '../runs/identity.ts'
import type { DestinationName } from '../destinations/names.ts'
import { InvalidInput } from '../runs/errors.ts'
import type { FileStore } from '../storage/file-store.ts'
import { join } from 'node:path'
import { toFileName } from '../storage/file-name.ts'
import type { SharedFolder } from '../storage/cached.ts'

/**
 * What a run reads and where it publishes it, fixed at its start. Every later step loads it and checks the identity
 * again.
 */
export interface ExportPlan {
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
  schema?: string | undefined
  maxDeletes?: number | 'all' | undefined
  filters: Record<string, string>
  exclude: string[]
  hash: string[]
  forExcel: boolean
  maxPages?: number | undefined
  requestsPerSecond?: number | undefined
  /** The ranges of a long list, which are read at once; with 1 no list is divided. */
  parallel?: number | undefined
  /** Absolute path of the publishing root; absent for the data folder's own `exports/`. */
  out?: string | undefined
  /** The address of the store that files are published to; absent for a folder. */
  files?: string | undefined
  /** Set for a fetch only: the ids to read. The ids themselves are stored beside the parts. */
  ids?: AskedIds
}

/** The most ranges of one list that may be read at once. */
export const mostParallel = 64

export interface AskedIds {
  /** The number of distinct ids. */
  asked: number
  /** Checksum of the ids in their order; their file beside the parts is named after it. */
  sha256: string
  /** Remarks about the ids for a person, one sentence each. */
  notes: string[]
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

/** @throws {InvalidInput} the worker does not have the destination */
export function refuseMissing(of: {
  destinations: ReadonlyMap<string, unknown>
  dataDir: string
  name: DestinationName
}): void {
  const { destinations, dataDir, name } = of
  // It would look for the write-ahead log of the file in another folder.
  if (name === 'duckdb' && dataDir.includes('?'))
    throw new InvalidInput(
      `to: DuckDB does not write files below ${dataDir}, because of the "?". Set CONNECTOR_DATA_DIR to a folder without it, or publish to parquet, csv or postgres.`,
    )
  if (destinations.has(name)) return
  throw new InvalidInput(`This worker has no destination ${name}. For postgres it needs WAREHOUSE_URL.`)
}

/** The leases of a run: only one run at a time exports a resource to a destination. */
export const leasesOf = (plan: Pick<ExportPlan, 'resources' | 'to'>): string[] =>
  plan.resources.flatMap((resource) => plan.to.map((destination) => `export ${resource} to ${destination}`))

const runFolder = ({ dataDir, run }: { dataDir: string; run: string }) =>
  join(dataDir, 'parts', toFileName(run))
const planFile = (folder: string) => join(folder, 'plan.json')

interface Place {
  dataDir: string
  shared: SharedFolder
}

/**
 * Saves the plan beside the parts, so that every step finds it and the parts can be published again. The first attempt
 * to open a run decides: returns the plan that counts.
 */
export async function savePlan({ plan, ...place }: Place & { plan: ExportPlan }): Promise<ExportPlan> {
  const { run } = plan
  if (await place.shared.create(planFile(runFolder({ ...place, run })), JSON.stringify(plan))) return plan
  return (await loadPlan({ ...place, run })) ?? plan
}

/** Loads the plan; undefined if the parts are not kept. Steps find it through `knownRuns`. */
export const loadPlan = ({ shared, ...of }: Place & { run: string }): Promise<ExportPlan | undefined> =>
  planIn({ shared, folder: runFolder(of) })

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
