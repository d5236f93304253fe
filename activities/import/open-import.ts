import { customers } from '../../core/billing/resources/customers.ts'
import { type ImportPlan, parseImportInput } from '../../core/imports/input.ts'
import { findKeptPlan, openImport } from '../../core/imports/open.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import { refuseOther } from '../../core/runs/identity.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/** Plans an import; see `openImport`. An execution that already has a plan keeps it. */
export function createOpenImport(deps: ActivityDeps) {
  return async (context: StepContext, request: unknown): Promise<Opened<ImportPlan>> => {
    const { owner: execution, scheduledAt: startedAt, signal, takeLeases, notes, watch } = context
    const kept = await findKeptPlan(notes, execution)
    if (kept !== undefined) return await toOpened(deps, kept)
    const input = parseImportInput(request)
    if (input.identity !== undefined) refuseOther({ run: input.identity, worker: deps.identity })
    // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
    await watch(deps.billing).list({ resource: customers, page: 1, pageSize: 1, tries: 1, signal })
    const plan = await openImport({ deps: { ...deps, notes }, input, execution, startedAt, takeLeases })
    return await toOpened(deps, plan)
  }
}
