import { allResources, listResources, type ListName, type ResourceName } from '../billing/resources/lists.ts'
import { isSortedByUpdated } from '../reading/order.ts'
import type { Series } from '../state/publications.ts'
import type { Billing } from '../billing/client.ts'
import type { Destination } from '../destinations/destination.ts'
import { WarehouseAwayError } from '../destinations/errors.ts'
import { changesUpTo, type Manifest } from '../destinations/manifest.ts'
import type { State } from '../state/open.ts'
import type { DestinationName } from '../destinations/names.ts'
import { namesOf } from '../tables/privacy.ts'
import { type ExportPlan, markOf, scopeOf } from './plan.ts'

/**
 * The default lookback: how long after its `updated` a record may be committed and still be found by the next
 * incremental read.
 */
const usualLookbackSeconds = 300

interface Deps {
  state: Pick<State, 'publications'>
  destinations: ReadonlyMap<string, Destination>
}

/** The counts of our own changes. */
interface WithLedger {
  deps: { state: { ledger: Pick<State['ledger'], 'claimsOf'> } }
}

interface Target {
  deps: Deps
  plan: ExportPlan
  resource: ResourceName
  destination: DestinationName
}

/** The place that an export names itself: a schema for PostgreSQL, otherwise a root folder. */
export const placeOf = ({ out, schema }: Pick<ExportPlan, 'out' | 'schema'>, destination: DestinationName) =>
  destination === 'postgres' ? schema : out

/**
 * The exports that a new one continues. Each folder, schema, database and base URL has its own, and so do the Excel
 * format and each set of filters, excluded columns and hashes. Columns of other resources do not matter.
 *
 * @param hashedWith fingerprint of the key that the read hashes with: a worker with another may publish kept parts
 */
export async function seriesOf(
  { deps, plan, resource, destination }: Target,
  hashedWith: string | undefined,
): Promise<Series> {
  const { identity, filters, exclude, out, files, forExcel } = plan
  const hashed = namesOf(allResources[resource], plan.hash)
  return {
    workspace: identity.workspace,
    testMode: identity.mode === 'test',
    resource,
    destination,
    location: (await deps.destinations.get(destination)?.placeOf?.(scopeOf(plan))) ?? out ?? files ?? '',
    baseUrl: identity.baseUrl,
    filters,
    excluded: namesOf(allResources[resource], exclude),
    hashed,
    hashedWith: (hashed.length > 0 && hashedWith) || '',
    // The Excel format applies to files only; warehouses in the same run get the usual values.
    forExcel: forExcel && destination === 'csv',
  }
}

/**
 * Where an incremental read may start for a destination, or why it may not. A warehouse must report that it holds everything up
 * to the stored watermark: somebody may have dropped it, removed rows, or restored it from a backup. If it does not answer, the
 * stored watermark is used: what is published to a warehouse that lacks the earlier changes is not proven there.
 */
async function continueFrom(
  place: Target & WithLedger & { deps: { hashKey: string }; resource: ListName },
): Promise<{ at: number } | { why: string | undefined }> {
  const hashedWith = markOf(place.plan, place.deps.hashKey)
  const mark = await place.deps.state.publications.watermark(await seriesOf(place, hashedWith))
  if (mark === undefined) return { why: undefined }
  const { resource, destination } = place
  const covered = await coverageOf(place).catch((error: unknown) =>
    error instanceof WarehouseAwayError ? Infinity : undefined,
  )
  if (covered === undefined || covered < mark.at)
    return { why: `${destination} no longer holds what its exports have left there` }
  const { fields = [] } = listResources[resource].unmoved ?? {}
  if ((await claimsOf(place)).all !== mark.seenClaims)
    return {
      why: `imports have changed ${fields[0] ?? 'records'} since the last read of the whole list, and the service does not move \`updated\` then`,
    }
  return { at: mark.at }
}

/** Our own changes that no incremental read of a list sees. */
async function claimsOf({ deps, plan, resource }: WithLedger & { plan: ExportPlan; resource: ListName }) {
  const { workspace, mode } = plan.identity
  const sum = { settled: 0, all: 0 }
  for (const kind of listResources[resource].unmoved?.byKinds ?? []) {
    const { settled, all } = await deps.state.ledger.claimsOf({ workspace, mode, kind })
    sum.settled += settled
    sum.all += all
  }
  return sum
}

/** Those that have ended before the run: a read of the whole list sees them. */
export async function toSeenClaims(
  options: WithLedger & Pick<Target, 'plan'> & { lists: readonly ListName[] },
): Promise<NonNullable<ExportPlan['seenClaims']>> {
  const seen: ExportPlan['seenClaims'] = {}
  for (const resource of options.lists)
    if (listResources[resource].unmoved !== undefined)
      seen[resource] = (await claimsOf({ ...options, resource })).settled
  return seen
}

/** The time up to which a warehouse holds every change, ms since 1970; Infinity for files, which impose no limit. */
async function coverageOf({ deps, plan, resource, destination }: Target): Promise<number | undefined> {
  const to = deps.destinations.get(destination)
  if (to?.coveredThrough === undefined) return Infinity
  return to.coveredThrough(scopeOf(plan), { resource, filters: plan.filters })
}

/**
 * The start of the incremental read of each resource that serves all destinations of the run. Omits a resource,
 * which is then read in full, if a destination has no watermark yet or does not hold what it speaks of, if imports have
 * changed what no incremental read sees, or if nothing shows that the list honors `ordering=updated`.
 */
export async function toSince(options: {
  deps: Deps & WithLedger['deps'] & { hashKey: string; billing: Billing }
  plan: ExportPlan
  /** The lists that the run reads. */
  lists: readonly ListName[]
  lookbackSeconds: number | undefined
}): Promise<Required<Pick<ExportPlan, 'since' | 'whole'>>> {
  const { deps, plan, lists, lookbackSeconds = usualLookbackSeconds } = options
  const since: ExportPlan['since'] = {}
  const whole: NonNullable<ExportPlan['whole']> = {}
  for (const resource of lists) {
    const starts = await Promise.all(
      plan.to.map((destination) => continueFrom({ deps, plan, resource, destination })),
    )
    const why = starts.find((start) => 'why' in start)
    if (why?.why !== undefined) whole[resource] = why.why
    if (why !== undefined) continue
    const list = listResources[resource]
    if (await isSortedByUpdated((request) => deps.billing.list({ resource: list, ...request })))
      // A whole number, as the manifest says it.
      since[resource] = Math.floor(
        Math.min(...starts.map((start) => ('at' in start ? start.at : -Infinity))) - lookbackSeconds * 1000,
      )
    else whole[resource] = 'nothing shows that the service sorts it by `updated`'
  }
  return { since, whole }
}

/**
 * How far a publication brings the changes in its destination: the next incremental read of its series starts there. Null unless
 * it is proven there, and every change before an incremental read was published there (kept parts may be published late). A
 * warehouse that loses its rows is noticed by those who go by the watermark.
 */
export async function changesThrough(options: {
  deps: Pick<Deps, 'state'>
  plan: Pick<ExportPlan, 'since'>
  resource: ResourceName
  manifest: Pick<Manifest, 'mode' | 'verdict' | 'clock' | 'completeThrough' | 'newestUpdated' | 'hiddenFound'>
  series: Series
}): Promise<number | null> {
  const { deps, plan, resource, manifest, series } = options
  const { mode, verdict, clock, hiddenFound } = manifest
  if (mode === 'byId') return null
  // `updated` is on the service's clock; this machine's clock may be ahead of it by any amount.
  if (verdict !== 'proven' || clock !== 'service') return null
  // A record that changes to a status hidden from the list would never appear in the order of `updated`.
  if (hiddenFound === true) return null
  const since = plan.since[resource]
  if (since !== undefined && ((await deps.state.publications.watermark(series))?.at ?? -Infinity) < since)
    return null
  return changesUpTo(manifest) ?? null
}
