import { customers } from '../../core/billing/resources/customers.ts'
import { parseImportInput } from '../../core/imports/input.ts'
import { findKeptPlan, openImport } from '../../core/imports/open.ts'
import type { ImportPlan } from '../../core/imports/plan.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import { refuseOther } from '../../core/runs/identity.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

/** Plans an import; see `openImport`. An execution that already has a plan keeps it. */
export function createOpenImport(deps: ActivityDeps) {
  return async (context: StepContext, input: unknown): Promise<Opened<ImportPlan>> => {
    const { owner: execution, scheduledAt: startedAt, signal, takeLeases } = context
    const kept = await findKeptPlan({ dataDir: deps.dataDir, ...execution })
    if (kept !== undefined) return await toOpened(deps, kept)
    const asked = parseImportInput(input)
    if (asked.identity !== undefined) refuseOther({ run: asked.identity, worker: deps.identity })
    // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
    await deps.billing.list({ resource: customers, page: 1, pageSize: 1, tries: 1, signal })
    return await toOpened(deps, await openImport({ deps, asked, execution, startedAt, takeLeases }))
  }
}
