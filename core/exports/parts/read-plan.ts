import { join } from 'node:path'
import type { Billing } from '../../billing/client.ts'
import { Refused } from '../../billing/errors.ts'
import { toInstant } from '../../billing/instants.ts'
import type { ListPage } from '../../billing/reply.ts'
import {
  allResources,
  isDocumentName,
  type ListName,
  listResources,
  type ResourceName,
} from '../../billing/resources/lists.ts'
import { PartsDamagedError } from '../../destinations/errors.ts'
import { planRead, type RangePlan } from '../../reading/ranges.ts'
import type { ReadOptions } from '../../reading/range-state.ts'
import { isRecord } from '../../reading/record.ts'
import type { State } from '../../state/open.ts'
import type { SharedFolder } from '../../storage/cached.ts'
import { PrivacyRefusedError, toTables, UnknownFieldError } from '../../tables/privacy.ts'
import type { Table } from '../../tables/table.ts'
import { type ExportPlan, markOf, partsOf } from '../plan.ts'

/** The dependencies of a read. */
export interface ReadDeps {
  /** Absolute path of the data folder. */
  dataDir: string
  shared: SharedFolder
  /** The clock of a read: workers on several machines may read it in turns. */
  state: Pick<State, 'now'>
  /** The number of documents that a fetch by id requests at once. */
  concurrency: number
  /** A list of twice as many records is read in ranges of at least this many. */
  recordsPerRange: number
  /** How long a record may stay invisible after its `created`, in ms. */
  readLagMs: number
  /** The secret key for hashed columns. */
  hashKey: string
}

/** How one list or set of documents is read and written. The first attempt decides it, and it never changes. */
export interface ReadPlan {
  /** As the version that read it laid them out. */
  tables: Table[]
  /** Fingerprint of the key that values are hashed with. */
  hashedWith?: string
  /** The ranges of a list. Documents are read by id instead. */
  list?: RangePlan
}

export const partsFolder = (options: { dataDir: string; run: string; resource: string }) =>
  join(partsOf(options), options.resource)

/** The folder for the parts of one range, from 0 for the newest. */
export const rangeFolder = (folder: string, range: number): string =>
  join(folder, 'ranges', String(range).padStart(2, '0'))

interface Read {
  deps: Pick<ReadDeps, 'dataDir' | 'shared' | 'hashKey'>
  plan: ExportPlan
  resource: ResourceName
}

/** Another worker began the read with other columns or another hash key: one like it must continue. */
class OtherReadError extends Error {
  override readonly name = 'OtherReadError'
  readonly retryable = true
  constructor({ resource, run }: { resource: string; run: string }) {
    super(
      `A worker with another version or another CONNECTOR_HASH_KEY began to read ${resource} in the run ${run}. ` +
        'One like it has to continue. If there is none any more, start a new run.',
    )
  }
}

/**
 * The plan of a read that another step has begun; undefined if it is gone.
 *
 * @throws {OtherReadError}
 * @throws {PartsDamagedError} the plan is unreadable
 */
export async function findReadPlan(read: Read): Promise<ReadPlan | undefined> {
  const { deps, plan, resource } = read
  const begun = await loadReadPlan({ ...deps, folder: partsFolder({ ...deps, run: plan.run, resource }) })
  if (begun === undefined || writesAs(begun, read)) return begun
  throw new OtherReadError({ resource, run: plan.run })
}

interface PartsFolder {
  shared: SharedFolder
  /** The folder of a resource's parts. */
  folder: string
}

/** @throws {PartsDamagedError} the plan is missing or unreadable */
export async function knownReadPlan(place: PartsFolder): Promise<ReadPlan> {
  const plan = await loadReadPlan(place)
  if (plan !== undefined) return plan
  throw new PartsDamagedError(`The plan of a read in ${place.folder} is missing. Run the export again.`)
}

async function loadReadPlan({ shared, folder }: PartsFolder): Promise<ReadPlan | undefined> {
  const path = join(folder, 'read.json')
  const text = await shared.read(path)
  try {
    return text === undefined ? undefined : (JSON.parse(text) as ReadPlan)
  } catch (cause) {
    throw new PartsDamagedError(`The plan of a read, ${path}, can't be read. Run the export again.`, {
      cause,
    })
  }
}

/**
 * Plans a read, or finds its plan. The first plan stays, also if another attempt brings one later: ranges that are being
 * read under a plan must never meet the bounds of another.
 *
 * @throws {OtherReadError}
 */
export async function openReadPlan(
  read: Omit<ListRead, 'resource'> & {
    resource: ResourceName
    /** Called with the number of requests that planning took. */
    onRequests: (made: number) => void
  },
): Promise<ReadPlan> {
  const found = await findReadPlan(read)
  if (found !== undefined) return found
  const { deps, plan, resource } = read
  const planned: ReadPlan = toLayout(read)
  if (!isDocumentName(resource)) {
    planned.list = await planList({ ...read, resource })
    read.onRequests(planned.list.root.counts.requests)
  }
  const path = join(partsFolder({ ...deps, run: plan.run, resource }), 'read.json')
  if (await deps.shared.create(path, JSON.stringify(planned))) return planned
  // Another worker has been quicker.
  return (await findReadPlan(read)) ?? planned
}

function toLayout({ deps: { hashKey }, plan, resource }: Read): ReadPlan {
  const { exclude, hash } = plan
  const hashedWith = markOf(plan, hashKey)
  return {
    tables: toTables(allResources[resource], { exclude, hash, hashKey }),
    ...(hashedWith !== undefined && { hashedWith }),
  }
}

/** Whether this worker would write the rows of a read as they are written: others would mix with them. */
function writesAs(begun: ReadPlan, read: Read): boolean {
  // Another version may describe the same column in other words.
  const toForm = ({ hashedWith, tables }: ReadPlan) =>
    JSON.stringify({ hashedWith, tables }, (name, value: unknown) => (name === 'note' ? undefined : value))
  try {
    return toForm(begun) === toForm(toLayout(read))
  } catch (error) {
    // It has no hash key, or does not know a column.
    if (error instanceof PrivacyRefusedError || error instanceof UnknownFieldError) return false
    throw error
  }
}

interface ListRead {
  deps: ReadDeps
  plan: ExportPlan
  resource: ListName
  billing: Billing
  cancelled: AbortSignal
}

/**
 * Divides a list into as many ranges as are read at once, before its read begins. A range costs about 1.5 requests, so a
 * short list is read as one; so is a read that is incremental (`updated` changes) or cut short.
 */
async function planList(read: ListRead): Promise<RangePlan> {
  const { deps, plan, resource } = read
  const { parallel = 1, maxPages, since } = plan
  const isDivisible = maxPages === undefined && since[resource] === undefined
  const first = await lookFirst(read)
  return await planRead({
    ...toReadOptions(read),
    idSet: () => Promise.reject(new Error('nothing has been read')),
    ...first,
    most: isDivisible ? Math.min(Math.floor((first.count ?? 0) / deps.recordsPerRange), parallel) : 1,
  })
}

/**
 * Looks at a list before its read begins: any change after this point belongs to the next read. The newest `updated`
 * that it shows is safe whatever it is, and a later one only saves work: even a service that ignores the ordering shows
 * none ahead of its own clock. Empty if the list refuses the request.
 */
async function lookFirst(
  read: ListRead,
): Promise<Pick<Parameters<typeof planRead>[0], 'count' | 'newestUpdated'>> {
  const { billing, resource, plan, cancelled } = read
  // A capped read proves nothing, and this request would count towards the cap.
  if (plan.maxPages !== undefined) return {}
  const request = { page: 1, pageSize: 1, ordering: '-updated', filters: plan.filters }
  const page: ListPage | undefined = await billing
    .list({ resource: listResources[resource], ...request, signal: cancelled })
    .catch((error: unknown) => {
      if (error instanceof Refused) return undefined
      throw error
    })
  const newest = page?.records[0]
  const newestUpdated = isRecord(newest) ? toInstant(newest['updated']) : undefined
  return { count: page?.count, ...(newestUpdated !== undefined && { newestUpdated }) }
}

export function toReadOptions({
  deps,
  plan,
  resource,
  billing,
  cancelled,
}: ListRead): Omit<ReadOptions, 'idSet'> {
  const list = listResources[resource]
  return {
    resource: list,
    filters: plan.filters,
    testMode: plan.identity.mode === 'test',
    readLagMs: deps.readLagMs,
    now: () => deps.state.now(),
    fetchPage: (page) => billing.list({ resource: list, signal: cancelled, ...page }),
    ...(plan.since[resource] !== undefined && { updatedSince: plan.since[resource] }),
    ...(plan.servedAt !== undefined && { serviceTime: plan.servedAt }),
    ...(plan.maxPages !== undefined && { maxRequests: plan.maxPages }),
  }
}
