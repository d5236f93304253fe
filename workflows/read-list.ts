import { proxyActivities } from '@temporalio/workflow'
import type { RangeResult } from '../activities/export/read.ts'
import type { Activities } from '../activities/index.ts'
import type { OpenRanges } from '../core/exports/parts/ranges/join-parts.ts'
import type { ExportPlan } from '../core/exports/plan.ts'
import type { Opened } from '../core/notifications/opened.ts'
import type { ExportProgress, ListProgress } from './export-view.ts'
import { reading } from './run/activity-options.ts'
import type { RunControl } from './run/control.ts'
import { refOf } from './run/run-ref.ts'
import { toThroughput } from './run/throughput.ts'

const { readSegment, readRange } = proxyActivities<Activities>(reading)

const firstSegmentSeconds = 15
/** The end of a segment drops the windows in flight, and most ranges take less than this. */
const firstRangeSeconds = 60
const longestSegmentSeconds = 600

/**
 * Reads one list and returns the checkpoint to publish; undefined if the run was stopped first. The read runs in
 * segments of growing length (15 s, doubling to ten minutes), so that progress shows early and 10,000 pages still
 * produce only tens of events. A long list is read in ranges, several at once.
 */
export async function readList(options: {
  plan: Opened<ExportPlan>
  resource: ExportPlan['resources'][number]
  list: ListProgress
  progress: ExportProgress
  show: () => void
  control: RunControl
}): Promise<string | undefined> {
  const { plan, resource, list, progress, show } = options
  // A broken range interrupts the other ranges of this list, and no other list.
  const control = options.control.forPart()
  let begun = 0
  let before = 0
  const showRead = ({ workers, ...now }: Counts) => {
    const { records, expected = list.expected ?? 0 } = now
    const at = Date.now()
    const throughput = toThroughput({
      done: records - before,
      left: expected - records,
      ms: at - begun,
      now: at,
    })
    Object.assign(list, now, { throughput })
    if (workers !== undefined) progress.workers = workers
    show()
  }
  let seconds = firstSegmentSeconds
  for (let segment = 1; ; segment += 1) {
    await control.mayContinue()
    if (control.stopping) return undefined
    begun = Date.now()
    before = list.records ?? 0
    const part = await control.untilInterrupted(() =>
      readSegment.executeWithOptions({ summary: `read ${resource}, part ${segment}` }, [
        { ...refOf(plan), resource, seconds },
      ]),
    )
    if (part === 'interrupted') continue
    if ('ranges' in part) {
      const { ranges, expected } = part
      begun = Date.now()
      before = part.records
      showRead({
        records: part.records,
        requests: part.requests,
        ...(expected !== undefined && { expected }),
      })
      await readRanges({
        open: part,
        parallel: plan.parallel ?? 1,
        control,
        readRange: ({ range, part: number, seconds: ms }) =>
          readRange.executeWithOptions(
            {
              summary: `read ${resource}, range ${range + 1} of ${ranges}, part ${number}`,
              taskQueue: plan.rangeQueue,
            },
            [{ ...refOf(plan), resource, range, seconds: ms }],
          ),
        onProgress: showRead,
      })
      continue
    }
    seconds = Math.min(seconds * 2, longestSegmentSeconds)
    const { verdict, checkpoint, records, requests, workers, expected } = part
    showRead({ records, requests, workers, ...(expected !== undefined && { expected }) })
    if (verdict !== undefined) return checkpoint
  }
}

type Counts = Pick<ListProgress, 'records' | 'requests' | 'expected'> & {
  records: number
  workers?: ExportProgress['workers']
}

/**
 * Reads the open ranges of a list, at most `parallel` at once; each reader takes the next range when it has finished
 * one. Ends early if the run is stopped, or if a range can no longer be read as one: the next segment of the list then
 * decides how to continue.
 */
export async function readRanges(options: {
  open: OpenRanges
  parallel: number
  control: RunControl
  readRange: (segment: { range: number; part: number; seconds: number }) => Promise<RangeResult>
  /** Called after each segment, with the counts of all ranges together. */
  onProgress: (now: Counts) => void
}): Promise<void> {
  const { open, parallel, control, readRange, onProgress } = options
  const total = { records: open.records, requests: open.requests }
  const queue = open.left.map((range) => ({ ...range, part: 1 }))
  let seconds = firstRangeSeconds
  let isOver = false

  /** Lets the other readers end too. */
  function end(): void {
    isOver = true
    control.interrupt()
  }

  async function readOn(one: (typeof queue)[number]): Promise<'ended' | 'over'> {
    for (;;) {
      await control.mayContinue()
      if (isOver || control.stopping) return 'over'
      const segment = { range: one.range, part: one.part, seconds }
      // All readers share it, from the first segments on: together they leave no more events than one.
      seconds = Math.min(seconds * 2, longestSegmentSeconds)
      const result = await control.untilInterrupted(() => readRange(segment))
      if (result === 'interrupted') continue
      one.part += 1
      if (result.ended === 'gone') return 'over'
      total.records += result.records - one.records
      total.requests += result.requests - one.requests
      Object.assign(one, { records: result.records, requests: result.requests })
      onProgress({ ...total, workers: result.workers })
      if (result.ended === 'broken') return 'over'
      if (result.ended === 'whole') return 'ended'
    }
  }

  async function reader(): Promise<void> {
    try {
      for (let one = queue.shift(); one !== undefined; one = queue.shift())
        if ((await readOn(one)) === 'over') return end()
    } catch (error) {
      end()
      throw error
    }
  }

  const readers = Array.from({ length: Math.min(parallel, queue.length) }, reader)
  const ended = await Promise.allSettled(readers)
  for (const one of ended) if (one.status === 'rejected') throw one.reason
}
