import { joinRanges } from '../../../reading/join-ranges.ts'
import type { RangeState } from '../../../reading/range-state.ts'
import { addDrift, type Drift, noDrift } from '../../../tables/drift.ts'
import type { SharedFolder } from '../../../storage/cached.ts'
import {
  type Checkpoint,
  nameAttempt,
  nameOf,
  saveCheckpoint,
  type SegmentProgress,
  toProgress,
} from '../checkpoint.ts'
import { loadRanges } from './kept-ranges.ts'

/** The ranges of a list that are still to be read. */
export interface OpenRanges extends SegmentProgress {
  ranges: number
  /** The ranges left, by number from the newest, and what was read of each. */
  left: { range: number; records: number; requests: number }[]
}

/**
 * Where a read in ranges continues: with the ranges that are left, or, if there are none or one broke, with the rest of
 * the ordinary read. Undefined if it is not divided.
 *
 * @throws {PartsDamagedError}
 * @throws {RangesMismatchError}
 */
export async function resumeRanges(place: {
  shared: SharedFolder
  /** The folder of the list's parts. */
  folder: string
}): Promise<{ kind: 'open'; open: OpenRanges } | { kind: 'joined'; checkpoint: Checkpoint } | undefined> {
  const kept = await loadRanges(place)
  if (kept === undefined) return undefined
  const { plan, checkpoints } = kept
  const states = checkpoints.map((checkpoint) => checkpoint?.read as RangeState | undefined)
  const joined = joinRanges(plan, states)
  if (joined.kind === 'open') {
    const ofRange = (range: number) => ({
      range,
      records: states[range]?.counts.records ?? 0,
      requests: states[range]?.requests.made ?? 0,
    })
    const all = states.map((_, range) => ofRange(range))
    const sum = (numbers: readonly number[]) => numbers.reduce((total, number) => total + number, 0)
    return {
      kind: 'open',
      open: {
        ...toProgress(plan.root),
        records: sum(all.map(({ records }) => records)),
        requests: plan.root.requests.made + sum(all.map(({ requests }) => requests)),
        ranges: all.length,
        left: joined.left.map(ofRange),
      },
    }
  }
  const read = checkpoints.filter((checkpoint) => checkpoint !== undefined)
  const checkpoint = {
    name: nameOf({ attempt: nameAttempt(undefined), saves: 0, isLast: false }),
    // Newest first, as one read leaves them.
    parts: read.flatMap(({ parts }) => parts),
    drift: sumDrift(read),
    read: joined.state,
    savedAt:
      read
        .map(({ savedAt }) => savedAt)
        .toSorted()
        .at(-1) ?? new Date(plan.root.startedAt).toISOString(),
  }
  await saveCheckpoint({ ...place, checkpoint })
  return { kind: 'joined', checkpoint }
}

function sumDrift(read: readonly Checkpoint[]): Drift {
  const drift = noDrift()
  for (const one of read) addDrift(drift, one.drift)
  return drift
}
