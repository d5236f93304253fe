import type { Billing } from '../../core/billing/client.ts'
import { isDocumentName } from '../../core/billing/resources/lists.ts'
import { type ExportPlan, leasesOf } from '../../core/exports/plan.ts'
import { type Checkpoint, type SegmentResult, toResult } from '../../core/exports/parts/checkpoint.ts'
import { lookFirst } from '../../core/exports/parts/list-source.ts'
import { divideList } from '../../core/exports/parts/ranges/divide-list.ts'
import { type OpenRanges, resumeRanges } from '../../core/exports/parts/ranges/join-parts.ts'
import type { SegmentSetup } from '../../core/exports/parts/read-into-parts.ts'
import { openRunFolder } from '../../core/exports/parts/read-folder.ts'
import type { LeaseOwner } from '../../core/state/leases.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import type { Segments } from './segments.ts'

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
 *
 * A long list is only divided here: the result names the ranges that are left to read. When none are, it joins them
 * and resumes where they end.
 */
export function createReadSegment({ deps, segments }: { deps: ActivityDeps; segments: Segments }) {
  return async function readSegment(
    context: StepContext,
    input: ReadInput,
  ): Promise<SegmentResult | OpenRanges> {
    const { plan, resource, owner } = input
    context.report(() => ({ resource }))
    await context.takeLeases(leasesOf({ resources: [resource], to: plan.to }), owner)
    const folder = await openRunFolder({ ...deps, plan, resource })

    async function resume(last: Checkpoint | undefined, billing: Billing) {
      if (last?.outcome !== undefined) return { result: toResult(last) }
      if (last !== undefined || isDocumentName(resource)) return { from: last }
      let ranges = await resumeRanges({ ...deps, folder })
      if (ranges === undefined) {
        const onPage: SegmentSetup['onPage'] = (step) => deps.observer.onPage(step)
        const setup = { deps, plan, resource, folder, billing, cancelled: context.signal, onPage }
        const first = await lookFirst({ ...setup, resource })
        if (first === undefined || !(await divideList(setup, first))) return { from: undefined, first }
        ranges = await resumeRanges({ ...deps, folder })
      }
      if (ranges === undefined) throw new Error('a list was divided, and its ranges are gone')
      return ranges.kind === 'open' ? { result: ranges.open } : { from: ranges.checkpoint }
    }

    const result = await segments.read<SegmentResult | OpenRanges>(
      context,
      { ...input, folder },
      { resume, toResult },
    )
    if ('ranges' in result) return result
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
