import type { RunRates } from '../../core/billing/run-rates.ts'
import type { ImportPlan } from '../../core/imports/input.ts'
import { fetchInput } from '../../core/imports/stored-input.ts'
import type { Staged } from '../../core/imports/run-files.ts'
import { stageRun } from '../../core/imports/staging.ts'
import { toReceiptTables } from '../../core/imports/totals.ts'
import type { Table } from '../../core/runs/view/view.ts'
import { refuseOlderThanMark, sharedMark } from '../../core/state/claims-mark.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface StageDeps {
  deps: ActivityDeps
  rates: RunRates
}

/** Checks a whole file and stages its changes; see `stageRun`. */
export function createStageImport({ deps, rates }: StageDeps) {
  return async (
    context: StepContext,
    { plan }: { plan: ImportPlan },
  ): Promise<Staged & { tables: Table[] }> => {
    const { signal } = context
    await refuseOlderThanMark({ ledger: deps.state.ledger, mark: sharedMark(deps) })
    await fetchInput({ ...deps, ...plan })
    const billing = context.watch(rates.forRun({ run: plan.run, ...plan.limits }))
    const staged = await context.outlast(() =>
      stageRun({
        deps: {
          ...deps,
          notes: context.notes,
          attempt: context.attempt,
          owner: context.owner,
          isClosed: context.isClosedTo(context.owner),
        },
        plan,
        billing,
        signal,
        onPhase: (phase) => context.report(() => ({ phase })),
      }),
    )
    return { ...staged, tables: toReceiptTables({ file: staged.totals }) }
  }
}
