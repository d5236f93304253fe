import type { RunRates } from '../../core/billing/run-rates.ts'
import { leasesOf } from '../../core/exports/leases.ts'
import {
  latestCheckpoint,
  type Checkpoint,
  type SegmentResult,
  toResult,
} from '../../core/exports/parts/checkpoint.ts'
import { openRunFolder } from '../../core/exports/parts/read-folder.ts'
import { openSegment } from '../../core/exports/parts/read-into-parts.ts'
import type { ExportPlan } from '../../core/exports/plan.ts'
import type { LeaseOwner } from '../../core/state/leases.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface ReadInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  /** How long to read before reporting back to the workflow. */
  seconds: number
  /** The main run, not its child that reads one list. */
  owner: LeaseOwner
}

/**
 * Reads from the last checkpoint of the run for a limited time, or to the end of the list. Retries, pauses and new
 * runs after a failure all resume this way.
 */
export function createReadSegment({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  const inProgress = new Map<string, Promise<unknown>>()
  return async function readSegment(context: StepContext, input: ReadInput): Promise<SegmentResult> {
    const { plan, resource, seconds, owner } = input
    const { signal: cancelled } = context
    context.report(() => ({ resource }))
    await context.takeLeases(leasesOf({ resources: [resource], to: plan.to }), owner)
    const folder = await openRunFolder({ ...deps, plan, resource, isClosed: context.isClosedTo(owner) })
    // This process may still be running an attempt that Temporal has given up on; awaits it, because both share a
    // request budget.
    const before = inProgress.get(folder)
    const read = async () => {
      let segment: ReturnType<typeof openSegment> | undefined
      try {
        await before?.catch(() => undefined)
        const from = await latestCheckpoint(folder)
        if (from?.outcome !== undefined) return from
        cancelled.throwIfAborted()
        const billing = rates.forRun(plan)
        const onPage = (step: Parameters<typeof deps.observer.onPage>[0]) => deps.observer.onPage(step)
        const opened = openSegment({ deps, plan, resource, folder, from, billing, cancelled, onPage })
        segment = opened
        context.report(() => opened.progress())
        return await opened.readFor(seconds * 1000)
      } finally {
        await segment?.close()
        if (inProgress.get(folder) === reading) inProgress.delete(folder)
      }
    }
    const reading: Promise<Checkpoint> = read()
    inProgress.set(folder, reading)
    const result = toResult(await reading)
    const { requests: page, records, verdict } = result
    deps.observer.onEvent({
      type: 'read',
      run: plan.run,
      resource,
      page,
      records,
      ...(verdict && { verdict }),
    })
    return result
  }
}
