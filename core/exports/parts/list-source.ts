import { listResources } from '../../billing/resources/lists.ts'
import type { ListName } from '../../billing/resources/resource.ts'
import { readList } from '../../reading/read-list.ts'
import type { ReadState } from '../../reading/state.ts'
import { openIdSet, type WrittenSet } from './written-ids.ts'
import { rejectedPart } from './part-names.ts'
import type { Source, SourceSetup } from './source.ts'

/** The proven read of a list, from its checkpoint on. */
export async function* readFromList(setup: SourceSetup & { resource: ListName }): Source {
  const { deps, plan, resource, folder, name, from, billing, cancelled, settled, toWritten, onWritten } =
    setup
  const list = listResources[resource]
  let idSet: WrittenSet | undefined
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
      ...(plan.servedAt !== undefined && { serviceTime: plan.servedAt }),
      ...(plan.maxPages !== undefined && { maxRequests: plan.maxPages }),
      ...(from !== undefined && { state: from.read as ReadState }),
    })
  } finally {
    await idSet?.close()
  }
}
