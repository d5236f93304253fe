import type { Billing } from '../../billing/client.ts'
import { Refused } from '../../billing/errors.ts'
import { listResources, type ListName } from '../../billing/resources/lists.ts'
import type { ListResource } from '../../billing/resources/resource.ts'
import { toInstant, type Instant } from '../../reading/instant.ts'
import { readList } from '../../reading/read-list.ts'
import { isRecord } from '../../reading/record.ts'
import type { ReadState } from '../../reading/state.ts'
import type { ExportPlan } from '../plan.ts'
import { openIdSet, type WrittenSet } from './written-ids.ts'
import { rejectedPart } from './part-names.ts'
import type { Source, SourceSetup } from './source.ts'

/** Reads a list with proof of completeness, starting from its checkpoint. */
export async function* readFromList(setup: SourceSetup & { resource: ListName }): Source {
  const { deps, plan, resource, folder, name, from, billing, cancelled, settled, toWritten, onWritten } =
    setup
  const list = listResources[resource]
  let idSet: WrittenSet | undefined
  // Fetched only before a read starts: any change after this point belongs to the next read.
  const newestUpdated =
    from === undefined ? await seeNewestUpdated({ billing, list, plan, cancelled }) : undefined
  try {
    return yield* readList({
      resource: list,
      filters: plan.filters,
      testMode: plan.identity.mode === 'test',
      concurrency: deps.concurrency,
      readLagMs: deps.readLagMs,
      now: Date.now,
      fetchPage: ({ signal, ...page }) =>
        billing.list({ resource: list, signal: AbortSignal.any([signal, cancelled]), ...page }),
      idSet: async () => {
        const all = await settled()
        const parts = all.filter(({ table }) => table === resource)
        const rejected = all.filter(({ table }) => table === rejectedPart)
        idSet = await openIdSet({ folder, name, parts, rejected, toWritten })
        onWritten(idSet)
        return idSet
      },
      ...(plan.since[resource] !== undefined && { updatedSince: plan.since[resource] }),
      ...(newestUpdated !== undefined && { newestUpdated }),
      ...(plan.servedAt !== undefined && { serviceTime: plan.servedAt }),
      ...(plan.maxPages !== undefined && { maxRequests: plan.maxPages }),
      ...(from !== undefined && { state: from.read as ReadState }),
    })
  } finally {
    await idSet?.close()
  }
}

/**
 * The newest `updated` that the list shows. Any value that the list has shown is safe, and a later one only saves
 * work: even a service that ignores the ordering shows no value ahead of its own clock. Undefined if the list is
 * empty or refuses the request.
 */
async function seeNewestUpdated(of: {
  billing: Billing
  list: ListResource
  plan: ExportPlan
  cancelled: AbortSignal
}): Promise<Instant | undefined> {
  const { billing, list, plan, cancelled } = of
  // A capped read proves nothing, and this request would count towards the cap.
  if (plan.maxPages !== undefined) return undefined
  const request = { resource: list, page: 1, pageSize: 1, ordering: '-updated', filters: plan.filters }
  const page = await billing.list({ ...request, signal: cancelled }).catch((error: unknown) => {
    if (error instanceof Refused) return undefined
    throw error
  })
  const newest = page?.records[0]
  return isRecord(newest) ? toInstant(newest['updated']) : undefined
}
