import type { RunRates } from '../../core/billing/run-rates.ts'
import type { ImportPlan } from '../../core/imports/input.ts'
import type { Staged } from '../../core/imports/run-files.ts'
import { stageRun } from '../../core/imports/staging/stage-run.ts'
import { toReceiptTables } from '../../core/imports/totals.ts'
import type { Table } from '../../core/runs/view/view.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import { fetchInput } from './fetch-input.ts'
import { gapDeps } from './gap-deps.ts'

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
    const { signal } = context
    await fetchInput(context.folder, plan)
    const billing = context.watch(rates.forRun({ run: plan.run, ...plan.limits }))
    const staged = await context.outlast(() =>
      stageRun({
        deps: { ...deps, ...gapDeps({ deps, context }) },
        plan,
        billing,
        signal,
        onPhase: (phase) => context.report(() => ({ phase })),
        onStaged: () => stagedHere.add(plan.run),
      }),
    )
    return { ...staged, tables: toReceiptTables({ file: staged.totals }) }
  }
}
