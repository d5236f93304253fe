import type { Billing } from '../../core/billing/client.ts'
import type { RunRates } from '../../core/billing/run-rates.ts'
import { type Checkpoint, latestCheckpoint } from '../../core/exports/parts/checkpoint.ts'
import { openSegment, type SegmentSetup } from '../../core/exports/parts/read-into-parts.ts'
import type { ExportPlan } from '../../core/exports/plan.ts'
import type { ActivityDeps } from '../deps.ts'
import { seeWorkers } from '../see-workers.ts'
import type { StepContext } from '../step.ts'

interface Segment {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  folder: string
  seconds: number
}

/** What a segment starts from, if there is something left to read. */
type Start = Pick<SegmentSetup, 'from' | 'first' | 'range'>

export type Segments = ReturnType<typeof createSegments>

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
