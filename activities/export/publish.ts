import type { DestinationName } from '../../core/destinations/names.ts'
import { type ExportPlan, leasesOf } from '../../core/exports/plan.ts'
import { isWhole } from '../../core/exports/proven.ts'
import { publishRead } from '../../core/exports/publish.ts'
import type { PublishAgain } from '../../core/exports/input.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import type { RunRates } from '../../core/billing/run-rates.ts'
import { closeExport } from '../../core/exports/close.ts'
import { pruneParts } from '../../core/exports/prune.ts'
import { notedReferences } from '../../core/exports/references.ts'
import { notedSheets, sheetOf } from '../../core/exports/sheet.ts'
import {
  type ExportedItem,
  type ExportReport,
  type PublishedExport,
  toPublished,
} from '../../core/exports/report.ts'
import type { View } from '../../core/runs/view/view.ts'

interface PublishInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  destination: DestinationName
  checkpoint: string
  /** Set when kept parts are published again. */
  again?: PublishAgain
}

/** Makes a finished read visible in one destination; see `publishRead`. */
export function createPublishExport(deps: ActivityDeps) {
  return async function publishExport(context: StepContext, input: PublishInput): Promise<PublishedExport> {
    const { plan, resource, destination, checkpoint } = input
    const { signal } = context
    await context.takeLeases(leasesOf({ resources: [resource], to: [destination] }))
    context.report(() => ({ resource, destination }))
    const startedAt = performance.now()
    const { row, sheet } = await publishRead({
      deps,
      plan,
      resource,
      destination,
      checkpoint,
      signal,
    })
    await context.notes.write(plan.run, { [sheetOf(resource, destination)]: sheet })
    const { verdict, records } = sheet
    deps.observer.onEvent({
      type: 'published',
      run: plan.run,
      resource,
      destination,
      verdict,
      records,
      ms: performance.now() - startedAt,
      readAt: Date.parse(row.startedAt),
      whole: isWhole(row),
    })
    return toPublished(resource, sheet)
  }
}

interface CloseInput {
  plan: ExportPlan
  exports: ExportedItem[]
  /** Set when kept parts are published again: the export's own report stays, and this run has one of its own. */
  again?: PublishAgain
}

/** Ends an export: writes its report and releases its leases. */
export function createCloseExport({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async (
    { owner, notes }: StepContext,
    input: CloseInput,
  ): Promise<{ report: ExportReport; view: View }> => {
    const { plan, exports, again } = input
    const { dataDir, shared, files, state, observer } = deps
    const closed = await closeExport({
      dataDir,
      files,
      plan,
      exports,
      references: await notedReferences(notes, plan),
      sheets: await notedSheets(notes, plan.run),
      name: again === undefined ? plan.run : owner.workflowId,
    })
    for (const name of leasesOf(plan)) await state.leases.release({ name, owner })
    rates.end(plan)
    await pruneParts({ dataDir, shared, state, now: Date.now() })
    observer.onEvent({ type: 'ended', run: plan.run, verdict: closed.report.verdict })
    return closed
  }
}
