import type { RunRates } from '../../core/billing/run-rates.ts'
import { closeExport } from '../../core/exports/close.ts'
import type { PublishAgain } from '../../core/exports/input.ts'
import { type ExportPlan, leasesOf } from '../../core/exports/plan.ts'
import { pruneParts } from '../../core/exports/parts/prune.ts'
import type { ExportReport, ResourceResult } from '../../core/exports/report.ts'
import type { View } from '../../core/runs/view/view.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface CloseInput {
  plan: ExportPlan
  results: ResourceResult[]
  /** Set when kept parts are published again: the export's own report is kept. */
  again?: PublishAgain
}

/** Ends an export: writes its report and releases its leases. */
export function createCloseExport({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async ({ owner }: StepContext, input: CloseInput): Promise<{ report: ExportReport; view: View }> => {
    const { plan, results, again } = input
    const { dataDir, shared, files, state, observer } = deps
    const closed = await closeExport({
      dataDir,
      shared,
      files,
      plan,
      results,
      keepReport: again !== undefined,
    })
    for (const name of leasesOf(plan)) await state.leases.release({ name, owner })
    rates.end(plan)
    await pruneParts({ dataDir, shared, state, now: Date.now() })
    observer.onEvent({ type: 'ended', run: plan.run, verdict: closed.report.verdict })
    return closed
  }
}
