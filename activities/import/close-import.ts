import { closeImport } from '../../core/imports/close.ts'
import { type ImportPlan, leaseOf } from '../../core/imports/input.ts'
import type { ImportResult } from '../../core/imports/view.ts'
import type { RunEnd } from '../../core/runs/run-notes.ts'
import type { View } from '../../core/runs/view/view.ts'
import { fetchInput } from '../../core/imports/stored-input.ts'
import { endSending } from '../changes/end-sending.ts'
import type { SendDeps } from '../changes/send-segment.ts'
import type { StepContext } from '../step.ts'

/** Ends an import: writes its report and files and releases its lease. */
export function createCloseImport({ deps, rates, attempts }: SendDeps) {
  return async (
    context: StepContext,
    input: RunEnd & { plan: ImportPlan },
  ): Promise<{ result: ImportResult; view: View }> => {
    const { state, observer } = deps
    const { notes } = context
    const { plan } = input
    context.report(() => ({ phase: 'writing the report' }))
    await fetchInput({ ...deps, ...plan })
    const lease = { name: leaseOf(plan.run), owner: context.owner, attempt: context.attempt }
    await context.takeLeases([lease.name])
    const closed = await context.outlast(async () => {
      await endSending({ deps, attempts, run: plan.run, lease })
      return await closeImport({ ...input, ...deps, ledger: state.ledger, notes })
    })
    await context.outlast(() => state.leases.release(lease))
    rates.end(plan)
    observer.onEvent({ type: 'ended', run: plan.run, verdict: closed.result.verdict })
    return closed
  }
}
