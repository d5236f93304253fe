import { listResources, type ListName } from '../billing/resources/lists.ts'
import { isSortedByUpdated } from '../reading/order.ts'
import type { ReadOutcome } from '../reading/outcome.ts'
import type { WatermarkKey } from '../state/watermarks.ts'
import type { Billing } from '../billing/client.ts'
import type { Destination } from '../destinations/destination.ts'
import { BusyWarehouseError, UnreachableWarehouseError } from '../destinations/warehouse/errors.ts'
import type { State } from '../state/open.ts'
import type { DestinationName } from '../destinations/names.ts'
import type { ExportPlan } from './plan.ts'
import { toPrivacyMark } from './privacy-fingerprint.ts'

/**
 * The default lookback: how long after its `updated` a record may be committed and still be found by the next
 * incremental read.
 */
const usualLookbackSeconds = 300

interface Deps {
  state: Pick<State, 'watermarks'>
  hashKey: string
  destinations: ReadonlyMap<string, Destination>
}

interface Place {
  deps: Deps
  plan: ExportPlan
  resource: ListName
  destination: DestinationName
}

/** The place that an export names itself: a schema for PostgreSQL, otherwise a root folder. */
export const placeOf = ({ out, schema }: Pick<ExportPlan, 'out' | 'schema'>, destination: DestinationName) =>
  destination === 'postgres' ? schema : out

/**
 * The key of a watermark. Each folder, schema, database and base URL has its own, and so do the Excel format and
 * each set of filters, excluded columns and hashes.
 */
async function keyOf({ deps, plan, resource, destination }: Place): Promise<WatermarkKey> {
  const { identity, filters, out, files, forExcel } = plan
  const place = (await deps.destinations.get(destination)?.placeOf?.(scopeOf(plan))) ?? out ?? files
  const privacy = toPrivacyMark({ plan, hashKey: deps.hashKey })
  const names = Object.keys(filters).toSorted()
  const view = {
    ...(names.length > 0 && { filters: names.map((name) => [name, filters[name]]) }),
    ...(privacy !== undefined && { privacy }),
    // Programs do not read the Excel format, so it must not move the watermark that they rely on.
    ...(forExcel && destination === 'csv' && { forExcel }),
  }
  return {
    workspace: identity.workspace,
    mode: identity.mode,
    resource,
    filter: Object.keys(view).length === 0 ? '' : JSON.stringify(view),
    destination: [destination, ...(place === undefined ? [] : [place]), `from ${identity.baseUrl}`].join(' '),
  }
}

const scopeOf = ({ identity, schema }: ExportPlan) => ({
  testMode: identity.mode === 'test',
  ...(schema !== undefined && { schema }),
})

/**
 * The effective watermark: undefined where a warehouse reports that it does not hold everything up to the stored one, because
 * somebody has dropped it, removed rows, or restored it from a backup. If the warehouse does not answer, the stored watermark
 * is used: what is published to a warehouse that lacks the earlier changes is not proven there.
 */
async function effectiveWatermark(place: Place): Promise<number | undefined> {
  const mark = await place.deps.state.watermarks.get(await keyOf(place))
  if (mark === undefined) return undefined
  const covered = await coverageOf(place).catch((error: unknown) => (isAway(error) ? Infinity : undefined))
  return covered !== undefined && covered >= mark.at ? mark.at : undefined
}

const isAway = (error: unknown) =>
  error instanceof UnreachableWarehouseError || error instanceof BusyWarehouseError

/** The time up to which a warehouse holds every change, ms since 1970; Infinity for files, which impose no limit. */
async function coverageOf({ deps, plan, resource, destination }: Place): Promise<number | undefined> {
  const to = deps.destinations.get(destination)
  if (to?.coveredThrough === undefined) return Infinity
  return to.coveredThrough(scopeOf(plan), { resource, filters: plan.filters })
}

/**
 * The start of the incremental read of each resource that serves all destinations of the run. Omits a resource,
 * which is then read in full, if a destination has no watermark yet or nothing shows that the list honors `ordering=updated`.
 */
export async function toSince(options: {
  deps: Deps & { billing: Billing }
  plan: ExportPlan
  /** The lists that the run reads. */
  lists: readonly ListName[]
  lookbackSeconds: number | undefined
}): Promise<ExportPlan['since']> {
  const { deps, plan, lists, lookbackSeconds = usualLookbackSeconds } = options
  const since: ExportPlan['since'] = {}
  for (const resource of lists) {
    const marks = await Promise.all(
      plan.to.map((destination) => effectiveWatermark({ deps, plan, resource, destination })),
    )
    const oldest = Math.min(...marks.map((mark) => mark ?? -Infinity))
    if (!Number.isFinite(oldest)) continue
    const list = listResources[resource]
    if (await isSortedByUpdated((request) => deps.billing.list({ resource: list, ...request })))
      since[resource] = oldest - lookbackSeconds * 1000
  }
  return since
}

/**
 * The new watermark of a read: its `completeThrough`, capped by the newest `updated` that the list showed before
 * the read. The Date header may come from another clock (a gateway's) that runs ahead of the one that writes
 * `updated`; changes made in between would fall between two reads. Undefined where the read proves nothing or
 * showed no `updated`.
 */
function watermarkOf(read: Pick<ReadOutcome, 'verdict' | 'completeThrough' | 'newestUpdated'>) {
  const { verdict, completeThrough, newestUpdated } = read
  if (verdict !== 'proven' || completeThrough === null || newestUpdated === undefined) return undefined
  return Math.min(Date.parse(completeThrough), Date.parse(newestUpdated))
}

/**
 * Advances the watermark after a proven run is visible in a destination, so that the next incremental read starts
 * where this one's `completeThrough` ends. The watermark never moves back, even if runs finish out of order, and
 * advances only if the destination already has every change before this run's start (kept parts may be published to
 * a destination that lacks them), and its values are hashed with this worker's key (the watermark is the key's, too).
 */
export async function moveWatermark(
  options: Place & {
    read: Pick<ReadOutcome, 'verdict' | 'clock' | 'completeThrough' | 'newestUpdated' | 'hiddenFound'>
    /** Fingerprint of the key that the published values are hashed with; undefined if none are. */
    hashedWith: string | undefined
  },
): Promise<void> {
  const { deps, plan, resource, read, hashedWith = '' } = options
  if (hashedWith !== (toPrivacyMark({ plan, hashKey: deps.hashKey })?.key ?? '')) return
  const { watermarks } = deps.state
  // `updated` is on the service's clock; this machine's clock may be ahead of it by any amount.
  if (read.clock !== 'service') return
  // A record that changes to a status hidden from the list would never appear in the order of `updated`.
  if (read.hiddenFound) return
  const since = plan.since[resource]
  const to = watermarkOf(read)
  if (to === undefined) return
  const key = await keyOf(options)
  if (since !== undefined && ((await watermarks.get(key))?.at ?? -Infinity) < since) return
  // A publication that joins the earlier ones is included in the coverage that the warehouse reports.
  const covered = await coverageOf(options).catch(() => undefined)
  if ((covered ?? -Infinity) < to) return
  await watermarks.move({ key, to, run: plan.run })
}
