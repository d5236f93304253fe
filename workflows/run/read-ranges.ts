import type { OpenRanges } from '../../core/exports/parts/ranges/join-parts.ts'
import type { RangeResult } from '../../activities/export/read-range.ts'
import type { RunWorkers } from '../../core/runs/workers.ts'
import type { RunControl } from './control.ts'

/** The end of a segment drops the windows in flight, and most ranges take less than this. */
const firstSegmentSeconds = 60
const longestSegmentSeconds = 600

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
  onProgress: (now: { records: number; requests: number; workers?: RunWorkers | undefined }) => void
}): Promise<void> {
  const { open, parallel, control, readRange, onProgress } = options
  const total = { records: open.records, requests: open.requests }
  const queue = open.left.map((range) => ({ ...range, part: 1 }))
  let seconds = firstSegmentSeconds
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
