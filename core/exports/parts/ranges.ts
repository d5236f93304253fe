import { joinRanges } from '../../reading/ranges.ts'
import type { IdOutcome, IdState } from '../../reading/read-by-id.ts'
import type { RangeState } from '../../reading/range-state.ts'
import { addDrift, noDrift } from '../../tables/drift.ts'
import { addTotals, noTotals } from '../../tables/totals.ts'
import type { SharedFolder } from '../../storage/cached.ts'
import {
  type AnyReadState,
  type Checkpoint,
  hasEnded,
  latestCheckpoint,
  nameAttempt,
  nameOf,
  saveCheckpoint,
  type ReadProgress,
  toProgress,
} from './checkpoint.ts'
import { rangeFolder, type ReadPlan } from './read-plan.ts'

/** How far the ranges of a read have come. */
export interface RangesProgress extends ReadProgress {
  ranges: number
  /** The ranges left, by number from the newest, and what was read of each; none once one broke. */
  left: { range: number; records: number; requests: number }[]
}

interface Read {
  shared: SharedFolder
  /** The folder of the resource's parts. */
  folder: string
  planned: ReadPlan
}

/**
 * @throws {PartsDamagedError}
 * @throws {RangesMismatchError}
 */
export async function progressOf(read: Read): Promise<RangesProgress> {
  const last = await lastOf(read)
  const joined = join(read.planned, last)
  const root = read.planned.list?.root
  const ranges = last.map((one, range) => {
    const { records, requests } = one?.read.counts ?? { records: 0, requests: 0 }
    return { range, records, requests }
  })
  return {
    ...(root && toProgress(root)),
    records: ranges.reduce((sum, { records }) => sum + records, 0),
    requests: ranges.reduce((sum, { requests }) => sum + requests, root?.counts.requests ?? 0),
    ranges: ranges.length,
    left: joined.kind === 'open' ? joined.left.map((range) => ranges[range]!) : [],
  }
}

/**
 * The point from which a read is finished: where its ranges have ended, or page by page if one broke. Of documents by id
 * it is the end. Undefined if there are ranges left.
 *
 * @throws {PartsDamagedError}
 * @throws {RangesMismatchError}
 */
export async function joinParts(
  read: Read & { toIdOutcome: (state: IdState) => IdOutcome },
): Promise<Checkpoint | undefined> {
  const last = await lastOf(read)
  const joined = join(read.planned, last)
  if (joined.kind === 'open') return undefined
  const begun = last.filter((checkpoint) => checkpoint !== undefined)
  const drift = noDrift()
  const totals = noTotals()
  for (const one of begun) {
    addDrift(drift, one.drift)
    addTotals(totals, one.totals)
  }
  const savedAt = begun.map((one) => one.savedAt).toSorted()
  const outcome = 'processed' in joined.state ? read.toIdOutcome(joined.state) : undefined
  const checkpoint = {
    name: nameOf({ attempt: nameAttempt(undefined), saves: 0, isLast: outcome !== undefined }),
    // Newest first, as one read leaves them.
    parts: begun.flatMap(({ parts }) => parts),
    drift,
    totals,
    read: joined.state,
    savedAt: savedAt.at(-1) ?? new Date(joined.state.startedAt).toISOString(),
    ...(outcome && { outcome }),
  }
  await saveCheckpoint({ ...read, checkpoint })
  return checkpoint
}

/** The latest checkpoint of each range; undefined where nothing was read yet. */
function lastOf({ shared, folder, planned }: Read): Promise<(Checkpoint | undefined)[]> {
  const ranges = planned.list?.ranges ?? [undefined]
  return Promise.all(
    ranges.map((_, range) => latestCheckpoint({ shared, folder: rangeFolder(folder, range) })),
  )
}

function join(
  { list }: ReadPlan,
  last: readonly (Checkpoint | undefined)[],
): { kind: 'joined'; state: AnyReadState } | { kind: 'open'; left: number[] } {
  const states = last.map((one) => one?.read as RangeState | undefined)
  if (list !== undefined) return joinRanges(list, states)
  const [one] = last
  return one !== undefined && hasEnded(one)
    ? { kind: 'joined', state: one.read }
    : { kind: 'open', left: [0] }
}
