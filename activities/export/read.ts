import type { Billing } from '../../core/billing/client.ts'
import { isDocumentName } from '../../core/billing/resources/lists.ts'
import { type ExportPlan, leasesOf } from '../../core/exports/plan.ts'
import { lookFirst } from '../../core/exports/parts/list-source.ts'
import { divideList } from '../../core/exports/parts/ranges/divide-list.ts'
import { type OpenRanges, resumeRanges } from '../../core/exports/parts/ranges/join-parts.ts'
import { openSegment, type SegmentSetup } from '../../core/exports/parts/read-into-parts.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'
import { loadRangePlan, rangeFolder } from '../../core/exports/parts/ranges/kept-ranges.ts'
import { findRunFolder, openRunFolder } from '../../core/exports/parts/read-folder.ts'
import { startRange } from '../../core/reading/plan-read.ts'
import type { RangeState } from '../../core/reading/range-state.ts'
import type { RunWorkers } from '../../core/runs/workers.ts'
import type { RunRates } from '../../core/billing/run-rates.ts'
import {
  type Checkpoint,
  latestCheckpoint,
  type SegmentResult,
  toResult,
} from '../../core/exports/parts/checkpoint.ts'
import { seeWorkers } from '../see-workers.ts'

interface ReadInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  /** How long to read before reporting back to the workflow. */
  seconds: number
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
    const { plan, resource } = input
    context.report(() => ({ resource }))
    await context.takeLeases(leasesOf({ resources: [resource], to: plan.to }))
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

interface RangeInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  /** The number of the range, from 0 for the newest. */
  range: number
  /** How long to read before reporting back to the workflow. */
  seconds: number
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
    const { plan, resource, range: number } = input
    context.report(() => ({ resource, range: number + 1 }))
    await context.takeLeases(leasesOf({ resources: [resource], to: plan.to }))
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
              ? { result: toRangeResult(last) }
              : { from: last, range: { number, start } },
          ),
        toResult: toRangeResult,
      },
    )
    const { requests: page, records } = result
    deps.observer.onEvent({ type: 'read', run: plan.run, resource, range: number + 1, page, records })
    return result
  }
}

const phaseOf = ({ read }: Checkpoint) => (read as RangeState).phase
const hasEnded = (checkpoint: Checkpoint) => phaseOf(checkpoint) !== 'chain'

function toRangeResult(checkpoint: Checkpoint): RangeResult {
  const { counts, requests } = checkpoint.read
  return {
    records: counts.records,
    requests: requests.made,
    ...(hasEnded(checkpoint) && { ended: phaseOf(checkpoint) === 'ended' ? 'whole' : 'broken' }),
  }
}

interface Segment {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  folder: string
  seconds: number
}

/** What a segment starts from, if there is something left to read. */
type Start = Pick<SegmentSetup, 'from' | 'first' | 'range'>

type Segments = ReturnType<typeof createSegments>

/** Reads segments into part folders, one attempt at a time for each folder. */
export function createSegments({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  const inProgress = new Map<string, Promise<unknown>>()

  /**
   * Runs one attempt in a folder. This process may still be running an attempt that Temporal has given up on; it is
   * awaited first, because both share a request budget.
   */
  async function alone<T>(folder: string, attempt: () => Promise<T>): Promise<T> {
    const before = inProgress.get(folder)
    const running = (async () => {
      await before?.catch(() => undefined)
      return await attempt()
    })()
    inProgress.set(folder, running)
    try {
      return await running
    } finally {
      if (inProgress.get(folder) === running) inProgress.delete(folder)
    }
  }

  return {
    /**
     * Reads for a limited time from where `resume` says, or to the end. `resume` may also give a result at once.
     */
    read: <Result extends object>(
      context: StepContext,
      segment: Segment,
      work: {
        resume: (last: Checkpoint | undefined, billing: Billing) => Promise<Start | { result: Result }>
        toResult: (checkpoint: Checkpoint) => Result
      },
    ): Promise<Result> =>
      alone(segment.folder, async () => {
        const { plan, resource, folder, seconds } = segment
        const { signal: cancelled } = context
        const billing = context.watch(rates.forRun(plan))
        const start = await work.resume(await latestCheckpoint({ shared: deps.shared, folder }), billing)
        if ('result' in start) return start.result
        cancelled.throwIfAborted()
        const onPage: SegmentSetup['onPage'] = (step) => deps.observer.onPage(step)
        const opened = openSegment({ deps, plan, resource, folder, ...start, billing, cancelled, onPage })
        try {
          context.report(() => opened.progress())
          const result = work.toResult(await opened.readFor(seconds * 1000))
          return { ...result, ...(await seeWorkers(deps.state)) }
        } finally {
          await opened.close()
        }
      }),
  }
}
