import { listResources, type ListName } from '../billing/resources/lists.ts'
import { isInOrder } from '../reading/order.ts'
import type { ReadOutcome } from '../reading/outcome.ts'
import type { WatermarkKey } from '../state/watermarks.ts'
import type { Billing } from '../billing/client.ts'
import type { Destination } from '../destinations/destination.ts'
import type { State } from '../state/open.ts'
import type { DestinationName } from '../destinations/names.ts'
import type { ExportPlan } from './plan.ts'
import { toPrivacyMark } from './privacy-fingerprint.ts'

/** How late a record may be committed behind its `updated` and still be found by the next incremental read. */
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

/** Where an export goes that names a place of its own: a schema, or another root. */
export const placeOf = ({ out, schema }: Pick<ExportPlan, 'out' | 'schema'>, destination: DestinationName) =>
  destination === 'postgres' ? schema : out

/**
 * What is in another folder, schema or database, came from another address, or was written for Excel or with
 * other columns or hashes, has its own watermark.
 */
async function keyOf({ deps, plan, resource, destination }: Place): Promise<WatermarkKey> {
  const { identity, filters, out, forExcel } = plan
  const place = (await deps.destinations.get(destination)?.placeOf?.(scopeOf(plan))) ?? out
  const privacy = toPrivacyMark({ plan, hashKey: deps.hashKey })
  const names = Object.keys(filters).toSorted()
  const view = {
    ...(names.length > 0 && { filters: names.map((name) => [name, filters[name]]) }),
    ...(privacy !== undefined && { privacy }),
    // Programs don't read a form for people, so what they got last is what counts for them.
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
 * The watermark, as far as the destination agrees: a warehouse that was dropped, made anew or brought back from a
 * backup says itself how far it goes. One that can't be asked now is taken at the watermark's word: if it is wrong,
 * the next run learns so from the warehouse, as what is published meanwhile joins nothing there.
 */
async function markOf(place: Place): Promise<number | undefined> {
  const mark = await place.deps.state.watermarks.get(await keyOf(place))
  if (mark === undefined) return undefined
  const covered = await coverageOf(place).catch(() => Infinity)
  return covered === undefined ? undefined : Math.min(mark.at, covered)
}

/** Up to when a warehouse holds every change; files hold what they hold, so nothing stands in their way (Infinity). */
async function coverageOf({ deps, plan, resource, destination }: Place): Promise<number | undefined> {
  const to = deps.destinations.get(destination)
  if (to?.coveredThrough === undefined) return Infinity
  const { filters, exclude: excluded, hash: hashed } = plan
  return to.coveredThrough(scopeOf(plan), { resource, filters, excluded, hashed })
}

/**
 * Since when each resource has to be read for all of the run's destinations. A resource is left out, and read
 * whole, where a destination has no watermark yet or the list does not honour the order of `updated`.
 */
export async function toSince(options: {
  deps: Deps & { billing: Billing }
  plan: ExportPlan
  /** What the run reads. */
  lists: readonly ListName[]
  lookbackSeconds: number | undefined
}): Promise<ExportPlan['since']> {
  const { deps, plan, lists, lookbackSeconds = usualLookbackSeconds } = options
  const since: ExportPlan['since'] = {}
  for (const resource of lists) {
    const marks = await Promise.all(
      plan.to.map((destination) => markOf({ deps, plan, resource, destination })),
    )
    const oldest = Math.min(...marks.map((mark) => mark ?? -Infinity))
    if (!Number.isFinite(oldest)) continue
    const list = listResources[resource]
    const page = await deps.billing.list({ resource: list, page: 1, pageSize: 100, ordering: 'updated' })
    if (isInOrder(page.records, 'updated')) since[resource] = oldest - lookbackSeconds * 1000
  }
  return since
}

/**
 * How far a read can answer for changes: up to its promise, and never beyond the newest `updated` that the list showed
 * before it. The Date header may be another clock's (a gateway's), ahead of the one that writes `updated`; what
 * changed in between would fall between two reads. Undefined where the read promises nothing or showed no `updated`.
 */
function watermarkOf(read: Pick<ReadOutcome, 'verdict' | 'completeThrough' | 'newestUpdated'>) {
  const { verdict, completeThrough, newestUpdated } = read
  if (verdict !== 'proven' || completeThrough === null || newestUpdated === undefined) return undefined
  return Math.min(Date.parse(completeThrough), Date.parse(newestUpdated))
}

/**
 * After a proven run is visible in a destination: the next incremental read for it begins where this one's promise
 * ends. Moved only forward, whichever run is late, and only where all that changed before this run's own start is
 * there already (kept parts may be published to a destination that never had what came before them).
 */
export async function moveWatermark(
  options: Place & {
    read: Pick<ReadOutcome, 'verdict' | 'clock' | 'completeThrough' | 'newestUpdated' | 'hiddenFound'>
  },
): Promise<void> {
  const { deps, plan, resource, read } = options
  const { watermarks } = deps.state
  // `updated` is the service's time: this machine's clock may be ahead of it by any amount.
  if (read.clock !== 'service') return
  // A record that changes to a status the list does not show would never come in the order of `updated`.
  if (read.hiddenFound) return
  const since = plan.since[resource]
  const to = watermarkOf(read)
  if (to === undefined) return
  if (since !== undefined && ((await markOf(options)) ?? -Infinity) < since) return
  // What is published now is a part of what the warehouse says of itself, if it joins what was there.
  const covered = await coverageOf(options).catch(() => undefined)
  if ((covered ?? -Infinity) < to) return
  await watermarks.move({ key: await keyOf(options), to, run: plan.run })
}
