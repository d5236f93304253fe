import { type ExportPlan, leasesOf } from '../../core/exports/plan.ts'
import type { Checkpoint } from '../../core/exports/parts/checkpoint.ts'
import { loadRangePlan, rangeFolder } from '../../core/exports/parts/ranges/kept-ranges.ts'
import { findRunFolder } from '../../core/exports/parts/read-folder.ts'
import { startRange } from '../../core/reading/plan-read.ts'
import type { RangeState } from '../../core/reading/range-state.ts'
import type { RunWorkers } from '../../core/runs/workers.ts'
import type { LeaseOwner } from '../../core/state/leases.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import type { Segments } from './segments.ts'

interface RangeInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  /** The number of the range, from 0 for the newest. */
  range: number
  /** How long to read before reporting back to the workflow. */
  seconds: number
  /** The main run, not its child that reads one list. */
  owner: LeaseOwner
}

/** The end of a segment of a range. */
export interface RangeResult {
  records: number
  requests: number
  /**
   * `whole`: its chain is unbroken. `broken`: it is not, so the list is to be read page by page. `gone`: the list is no
   * longer divided so, and its read starts over. Absent if there is more to read.
   */
  ended?: 'whole' | 'broken' | 'gone'
  /** Who read; absent for a state in the data folder. */
  workers?: RunWorkers
}

/** Reads one range of a divided list, from its last checkpoint, for a limited time or to the end of the range. */
export function createReadRange({ deps, segments }: { deps: ActivityDeps; segments: Segments }) {
  return async function readRange(context: StepContext, input: RangeInput): Promise<RangeResult> {
    const { plan, resource, range: number, owner } = input
    context.report(() => ({ resource, range: number + 1 }))
    await context.takeLeases(leasesOf({ resources: [resource], to: plan.to }), owner)
    const folder = await findRunFolder({ ...deps, plan, resource })
    const ranges = folder === undefined ? undefined : await loadRangePlan({ ...deps, folder })
    const planned = ranges?.ranges[number]
    if (folder === undefined || ranges === undefined || planned === undefined)
      return { records: 0, requests: 0, ended: 'gone' }
    const start = startRange(ranges, planned)
    const result = await segments.read<RangeResult>(
      context,
      { ...input, folder: rangeFolder(folder, number) },
      {
        resume: (last) =>
          Promise.resolve(
            last !== undefined && hasEnded(last)
              ? { result: toResult(last) }
              : { from: last, range: { number, start } },
          ),
        toResult,
      },
    )
    const { requests: page, records } = result
    deps.observer.onEvent({ type: 'read', run: plan.run, resource, range: number + 1, page, records })
    return result
  }
}

const phaseOf = ({ read }: Checkpoint) => (read as RangeState).pass.phase
const hasEnded = (checkpoint: Checkpoint) => phaseOf(checkpoint) !== 'chain'

function toResult(checkpoint: Checkpoint): RangeResult {
  const { counts, requests } = checkpoint.read
  return {
    records: counts.records,
    requests: requests.made,
    ...(hasEnded(checkpoint) && { ended: phaseOf(checkpoint) === 'ended' ? 'whole' : 'broken' }),
  }
}
