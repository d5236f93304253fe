import type { ListPage } from '../../billing/reply.ts'
import { Refused } from '../../billing/errors.ts'
import { listResources, type ListName } from '../../billing/resources/lists.ts'
import { toInstant, type Instant } from '../../billing/instants.ts'
import type { ReadOptions } from '../../reading/range-state.ts'
import { readRange } from '../../reading/read-list.ts'
import { readList } from '../../reading/read-list.ts'
import { toTables } from '../../tables/privacy.ts'
import { isRecord } from '../../reading/record.ts'
import type { RangeState } from '../../reading/range-state.ts'
import { fetchParts } from './fetch-parts.ts'
import { findRepeatedIds, openIdSet, type WrittenSet } from './written-ids.ts'
import { rejectedPart } from './chunks.ts'
import type { Source, SourceSetup } from './source.ts'

type ListSetup = Pick<SourceSetup, 'deps' | 'plan' | 'billing' | 'cancelled'> & { resource: ListName }

/** Reads a list with proof of completeness, starting from its checkpoint or, without one, from `first`. */
export async function* readFromList(
  setup: SourceSetup & { resource: ListName; first: FirstLook | undefined },
): Source {
  const { deps, resource, folder, name, from, first, settled, toWritten, onWritten } = setup
  let idSet: WrittenSet | undefined
  try {
    return yield* readList({
      ...toReadOptions(setup),
      idSet: async () => {
        const all = await settled()
        await fetchParts({ ...deps, parts: all, signal: setup.cancelled })
        const parts = all.filter(({ table }) => table === resource)
        const rejected = all.filter(({ table }) => table === rejectedPart)
        const { exclude, hash } = setup.plan
        const privacy = { exclude, hash, hashKey: deps.hashKey }
        const columns = toTables(listResources[resource], privacy)[0]?.columns ?? []
        const created = columns.findIndex((column) => column.name === 'created')
        idSet = await openIdSet({ folder, name, parts, rejected, toWritten, created })
        onWritten(idSet)
        return idSet
      },
      repeatedIds: async () => {
        const all = (await settled()).filter(({ table }) => table === resource)
        await fetchParts({ ...deps, parts: all, signal: setup.cancelled })
        return await findRepeatedIds(all)
      },
      ...(first?.newestUpdated !== undefined && { newestUpdated: first.newestUpdated }),
      ...(from !== undefined && { state: from.read as RangeState }),
    })
  } finally {
    await idSet?.close()
  }
}

/** Reads one range of a list, starting from its checkpoint or, without one, from its start. */
export async function* readFromRange(setup: SourceSetup & { resource: ListName; start: RangeState }): Source {
  const state = (setup.from?.read ?? setup.start) as RangeState
  yield* readRange({ ...toReadOptions(setup), state })
  return undefined
}

export function toReadOptions({
  deps,
  plan,
  resource,
  billing,
  cancelled,
}: ListSetup): Omit<ReadOptions, 'idSet'> {
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

/** What the list shows before its read begins. */
export interface FirstLook {
  /**
   * The newest `updated`. Any value that the list has shown is safe, and a later one only saves work: even a service
   * that ignores the ordering shows no value ahead of its own clock. Undefined if the list is empty.
   */
  newestUpdated: Instant | undefined
  /** The service's count; only a hint. */
  count: number | undefined
}

/**
 * Looks at a list before its read begins: any change after this point belongs to the next read. Undefined if the list
 * refuses the request.
 */
export async function lookFirst(setup: ListSetup): Promise<FirstLook | undefined> {
  const { billing, resource, plan, cancelled } = setup
  // A capped read proves nothing, and this request would count towards the cap.
  if (plan.maxPages !== undefined) return undefined
  const request = { page: 1, pageSize: 1, ordering: '-updated', filters: plan.filters }
  const page: ListPage | undefined = await billing
    .list({ resource: listResources[resource], ...request, signal: cancelled })
    .catch((error: unknown) => {
      if (error instanceof Refused) return undefined
      throw error
    })
  const newest = page?.records[0]
  return (
    page && { newestUpdated: isRecord(newest) ? toInstant(newest['updated']) : undefined, count: page.count }
  )
}
