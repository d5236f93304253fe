import type { RunRates } from '../../core/billing/run-rates.ts'
import type { ImportPlan } from '../../core/imports/plan.ts'
import type { Staged } from '../../core/imports/run-files.ts'
import { stageRun } from '../../core/imports/staging/stage-run.ts'
import { toReceiptTables } from '../../core/imports/receipt.ts'
import type { Table } from '../../core/runs/view/view.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface StageDeps {
  deps: ActivityDeps
  rates: RunRates
  /** Collects the runs that this process has staged: their rows are as current as the service's list. */
  stagedHere: Set<string>
}

/** Checks a whole file and stages its changes; see `stageRun`. */
export function createStageImport({ deps, rates, stagedHere }: StageDeps) {
  return async (
    context: StepContext,
    { plan }: { plan: ImportPlan },
  ): Promise<Staged & { tables: Table[] }> => {
    const { owner, isClosedTo, signal } = context
    const staged = await stageRun({
      deps: { ...deps, owner, isClosed: isClosedTo(owner) },
      plan,
      billing: rates.forRun({ run: plan.run, ...plan.limits }),
      signal,
      onPhase: (phase) => context.report(() => ({ phase })),
      onStaged: () => stagedHere.add(plan.run),
    })
    return { ...staged, tables: toReceiptTables({ file: staged.totals }) }
  }
}
