import { closeRecovery } from '../../core/recoveries/report.ts'
import { type RecoveryPlan, leaseOf } from '../../core/recoveries/input.ts'
import type { RecoveryReport } from '../../core/recoveries/view.ts'
import type { RunEnd } from '../../core/runs/run-notes.ts'
import type { View } from '../../core/runs/view/view.ts'
import { endSending } from '../changes/end-sending.ts'
import type { SendDeps } from '../changes/send-segment.ts'
import type { StepContext } from '../step.ts'

/** Ends a recovery: writes its report and files and releases the workspace's lease. */
export function createCloseRecovery({ deps, rates, attempts }: SendDeps) {
  return async (
    context: StepContext,
    input: RunEnd & { plan: RecoveryPlan },
  ): Promise<{ result: RecoveryReport; view: View }> => {
    const { state } = deps
    const { notes } = context
    const { plan } = input
    context.report(() => ({ phase: 'writing the report' }))
    const lease = { name: leaseOf(plan), owner: plan.execution, attempt: context.attempt }
    const closed = await context.outlast(async () => {
      // A dry run holds no lease, and has sent nothing.
      if (!plan.dryRun) await endSending({ deps, attempts, run: plan.run, lease })
      return await closeRecovery({ ...input, ...deps, ledger: state.ledger, notes })
    })
    await context.outlast(() => state.leases.release(lease))
    rates.end(plan)
    return closed
  }
}
