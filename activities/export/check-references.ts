import { isDeepStrictEqual } from 'node:util'
import type { RunRates } from '../../core/billing/run-rates.ts'
import { type ExportPlan, leasesOf } from '../../core/exports/plan.ts'
import { checkReferences, type ReferenceNotes, referencesOf } from '../../core/exports/references.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface CheckInput {
  plan: ExportPlan
  /** The list whose records name those of others. */
  resource: ExportPlan['resources'][number]
  /** The ends of its read and of the others; those of the lists that could not be read are missing. */
  checkpoints: Partial<Record<ExportPlan['resources'][number], string>>
}

/** Checks the references of a list, once, and notes what it found: its publications and the report say so. */
export function createCheckReferences({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  return async function checkOnce(context: StepContext, input: CheckInput): Promise<void> {
    const { plan, resource, checkpoints } = input
    const { notes, signal } = context
    context.report(() => ({ resource }))
    await context.takeLeases(leasesOf({ resources: [resource], to: plan.to }))
    const name = referencesOf(resource)
    const noted = (await notes.read<ReferenceNotes>(plan.run))[name]
    if (isDeepStrictEqual(noted?.checkpoints, checkpoints)) return
    const billing = context.watch(rates.forRun(plan))
    const found = await checkReferences({ deps, plan, resource, checkpoints, billing, signal })
    await notes.write(plan.run, { [name]: { checkpoints, found } })
  }
}
