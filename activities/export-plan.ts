import type { ResourceName } from '../billing/resources/all-resources.ts'
import { differenceOf, type Identity } from '../state/identity.ts'
import type { ActivityDeps } from './deps.ts'
import { InvalidInput, WrongWorker } from './errors.ts'
import type { MarkName } from './marks.ts'
import type { NoticeKind } from './notice.ts'

export const destinationNames = ['csv', 'duckdb', 'parquet', 'postgres'] as const
export type DestinationName = (typeof destinationNames)[number]

/**
 * What a run reads and where it publishes it, settled once at its start; every later step gets it and checks the
 * identity again.
 */
export interface ExportPlan {
  run: string
  startedAt: string
  /** The slot of the schedule that started it (ISO 8601). */
  scheduledFor?: string | undefined
  /** The Date of a response that came before every list request of this run, in ms. */
  servedAt: number | undefined
  identity: Identity
  resources: ResourceName[]
  to: DestinationName[]
  /** For each resource that is read incrementally: since when, in ms. */
  since: Partial<Record<ResourceName, number>>
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
  /** The search attributes that the server has. */
  marks?: MarkName[]
  /** Only of a fetch: the documents are read by these ids, which lie beside the parts. */
  ids?: AskedIds
}

export interface AskedIds {
  /** How many, each counted once. */
  asked: number
  /** Of the ids in their order: tells one fetch from another. */
  sha256: string
  /** What a person may want to know of the ids, a sentence each. */
  notes: string[]
}

export function refuseOther(identities: { run: Identity; worker: Identity }): void {
  const difference = differenceOf(identities)
  if (difference !== undefined) throw new WrongWorker(difference)
}

export function refuseMissing({ deps, name }: { deps: ActivityDeps; name: DestinationName }): void {
  if (deps.destinations.has(name)) return
  throw new InvalidInput(`This worker has no destination ${name}. For postgres it needs WAREHOUSE_URL.`)
}
