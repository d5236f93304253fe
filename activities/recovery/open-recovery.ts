import { subscriptions } from '../../core/billing/resources/subscriptions.ts'
import { refuseForgotten } from '../../core/changes/staged-changes.ts'
import { type Opened, toOpened } from '../../core/notifications/opened.ts'
import { type RecoveryPlan, leasesOf, parseRecoveryInput } from '../../core/recoveries/input.ts'
import { nameRecovery, saveRecoveryPlan, toRecoveryPlan } from '../../core/recoveries/open.ts'
import { refuseOther } from '../../core/runs/identity.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface OpenRecoveryInput {
  input: unknown
  /** The run id of the first execution; it stays the same across a continue-as-new and a reset. */
  firstRunId: string
}

/**
 * Plans a recovery: checks its input and the service, and that no other recovery is active in the workspace. An execution
 * that already has a plan keeps it.
 */
export function createOpenRecovery(deps: ActivityDeps) {
  return async function openRecovery(
    { owner, scheduledAt: startedAt, signal, takeLeases, notes, watch }: StepContext,
    { input: request, firstRunId }: OpenRecoveryInput,
  ): Promise<Opened<RecoveryPlan>> {
    const { identity, settleMs, dataDir } = deps
    const execution = { workflowId: owner.workflowId, runId: firstRunId }
    const { plan: kept, run } = await nameRecovery(notes, execution)
    if (kept !== undefined) {
      refuseOther({ run: kept.identity, worker: identity })
      await takeLeases(leasesOf(kept), kept.execution)
      return await toOpened(deps, kept)
    }
    await refuseForgotten(deps, run)
    const input = parseRecoveryInput(request)
    if (input.identity !== undefined) refuseOther({ run: input.identity, worker: identity })
    // Try once and let Temporal retry: its UI shows the failure, which retries in here would hide for minutes.
    await watch(deps.billing).list({ resource: subscriptions, page: 1, pageSize: 1, tries: 1, signal })
    const plan = toRecoveryPlan({ input, run, execution, startedAt, identity, settleMs })
    await takeLeases(leasesOf(plan), execution)
    await saveRecoveryPlan({ dataDir, notes, plan, input: request })
    return await toOpened(deps, plan)
  }
}
