import type { Billing } from '../../../core/billing/client.ts'
import { openReadPlan, type ReadDeps, type ReadPlan } from '../../../core/exports/parts/read-plan.ts'
import type { ExportPlan } from '../../../core/exports/plan.ts'
import type { PageRequest } from '../../../core/reading/range-state.ts'
import type { SharedFolder } from '../../../core/storage/cached.ts'
import { standing } from '../reading/lists.ts'

/** Plans the read of the customers of a service that has so many. */
export async function planCustomers(of: {
  deps: Partial<ReadDeps> & { dataDir: string; shared: SharedFolder }
  plan: ExportPlan
  count?: number
  /** Called for each request. */
  onRequest?: () => void
}): Promise<ReadPlan> {
  const fetchPage = standing(of.count ?? 0)
  const state = { now: () => Date.parse('2026-11-20T00:00:00Z') }
  return await openReadPlan({
    deps: { state, concurrency: 1, recordsPerRange: 1_000, readLagMs: 0, hashKey: '', ...of.deps },
    plan: of.plan,
    resource: 'customers',
    billing: {
      list: (request: PageRequest) => {
        of.onRequest?.()
        return fetchPage(request)
      },
    } as unknown as Billing,
    cancelled: new AbortController().signal,
    onRequests: () => undefined,
  })
}
