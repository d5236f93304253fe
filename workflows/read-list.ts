import { proxyActivities } from '@temporalio/workflow'
import type { PartResult } from '../activities/export/read.ts'
import type { Activities } from '../activities/index.ts'
import type { RangesProgress } from '../core/exports/parts/ranges.ts'
import type { ExportPlan } from '../core/exports/plan.ts'
import type { Opened } from '../core/notifications/opened.ts'
import type { ListProgress } from './export-view.ts'
import { reading } from './run/activity-options.ts'
import type { RunControl } from './run/control.ts'
import { refOf } from './run/run-ref.ts'
import { toThroughput } from './run/throughput.ts'

const { planRead, readRange, finishRead } = proxyActivities<Activities>(reading)

const firstSegmentSeconds = 15
/** The end of a segment drops what it has asked for, and most ranges take less than this. */
const firstRangeSeconds = 60
const longestSegmentSeconds = 600

/**
 * Reads one list, or documents by id, and returns the checkpoint to publish; undefined if the run was stopped first: plans
 * its ranges, reads them, several at once, and finishes the read. The segments grow (doubling to ten minutes), so that
 * progress shows early and 10,000 pages still produce only tens of events.
 */
export async function readList(options: {
  plan: Opened<ExportPlan>
  resource: ExportPlan['resources'][number]
  list: ListProgress
  show: () => void
  control: RunControl
}): Promise<string | undefined> {
  const { plan, resource, list, show } = options
  // A broken range interrupts the other ranges of this list, and no other list.
  const control = options.control.forPart()
  let begun = 0
  let before = 0
  const begin = () => {
    begun = Date.now()
    before = list.records ?? 0
  }
  const showRead = (now: Counts) => {
    const { records, expected = list.expected ?? 0 } = now
    const at = Date.now()
    const throughput = toThroughput({
      done: records - before,
      left: expected - records,
      ms: at - begun,
      now: at,
    })
    Object.assign(list, now, { throughput })
    show()
  }
  let seconds = firstSegmentSeconds
  for (let segment = 1; ; segment += 1) {
    await control.mayContinue()
    if (control.stopping) return undefined
    const planned = await control.untilInterrupted(() =>
      planRead.executeWithOptions({ summary: `plan the read of ${resource}` }, [
        { ...refOf(plan), resource },
      ]),
    )
    if (planned === 'interrupted') continue
    const { ranges, records, requests, expected } = planned
    Object.assign(list, { records, requests, ...(expected !== undefined && { expected }) })
    begin()
    const isRead = await readRanges({
      open: planned,
      reading: (list.reading = []),
      parallel: plan.parallel ?? 1,
      control,
      readRange: ({ part, ...segment }) =>
        readRange.executeWithOptions(
          {
            summary: `read ${resource}${ranges > 1 ? `, range ${segment.range + 1} of ${ranges}` : ''}, part ${part}`,
            taskQueue: plan.rangeQueue,
          },
          [{ ...refOf(plan), resource, ...segment }],
        ),
      onProgress: showRead,
    })
    if (!isRead) continue
    await control.mayContinue()
    if (control.stopping) return undefined
    begin()
    const finished = await control.untilInterrupted(() =>
      finishRead.executeWithOptions({ summary: `finish the read of ${resource}, part ${segment}` }, [
        { ...refOf(plan), resource, seconds },
      ]),
    )
    if (finished === 'interrupted' || finished.ended === 'gone') continue
    const { ended, ...read } = finished
    seconds = Math.min(seconds * 2, longestSegmentSeconds)
    showRead(read)
    if (typeof ended === 'object') return ended.checkpoint
  }
}

type Counts = Pick<ListProgress, 'records' | 'requests' | 'expected'> & { records: number }

/**
 * Reads the open ranges of a list, at most `parallel` at once; each reader takes the next range when it has finished
 * one. Ends early, with false, if the run is stopped, or if a range can no longer be read as one: its plan then says how
 * to continue.
 */
export async function readRanges(options: {
  open: RangesProgress
  /** Takes the ranges that are being read, with what their last segments told. */
  reading: RangesProgress['left']
  parallel: number
  control: RunControl
  readRange: (segment: { range: number; part: number; seconds: number }) => Promise<PartResult>
  /** Called after each segment, with the counts of all ranges together. */
  onProgress: (now: Counts) => void
}): Promise<boolean> {
  const { open, reading, parallel, control, readRange, onProgress } = options
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
      onProgress({ ...total })
      if (result.ended === 'broken') return 'over'
      if (result.ended === 'whole') return 'ended'
    }
  }

  async function reader(): Promise<void> {
    try {
      for (let one = queue.shift(); one !== undefined; one = queue.shift()) {
        reading.push(one)
        if ((await readOn(one)) === 'over') return end()
        reading.splice(reading.indexOf(one), 1)
      }
    } catch (error) {
      end()
      throw error
    }
  }

  const readers = Array.from({ length: Math.min(parallel, queue.length) }, reader)
  const ended = await Promise.allSettled(readers)
  for (const one of ended) if (one.status === 'rejected') throw one.reason
  return !isOver
}
