import { isDocumentName } from '../../core/billing/resources/lists.ts'
import type { RunRates } from '../../core/billing/run-rates.ts'
import {
  type AnyReadState,
  type Checkpoint,
  hasEnded,
  latestCheckpoint,
  type ReadProgress,
  toProgress,
} from '../../core/exports/parts/checkpoint.ts'
import { joinParts, progressOf, type RangesProgress } from '../../core/exports/parts/ranges.ts'
import {
  findReadPlan,
  openReadPlan,
  partsFolder,
  rangeFolder,
  type ReadPlan,
  toReadOptions,
} from '../../core/exports/parts/read-plan.ts'
import { readSegment, type SegmentSetup } from '../../core/exports/parts/read-segment.ts'
import { type ExportPlan, leasesOf } from '../../core/exports/plan.ts'
import { startRange } from '../../core/reading/ranges.ts'
import type { RangeState } from '../../core/reading/range-state.ts'
import { type IdState, readById, toIdOutcome } from '../../core/reading/read-by-id.ts'
import { readList, readRange } from '../../core/reading/read-list.ts'
import { createKeyedMutex } from '../../core/storage/keyed-mutex.ts'
import type { ActivityDeps } from '../deps.ts'
import type { StepContext } from '../step.ts'

interface ReadInput {
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
}

interface SegmentInput extends ReadInput {
  /** How long to read before reporting back to the workflow. */
  seconds: number
}

interface RangeInput extends SegmentInput {
  /** The number of the range, from 0 for the newest. */
  range: number
}

/** The end of a segment of a range. */
export interface RangeResult extends ReadProgress {
  /**
   * `whole`: its chain is unbroken. `broken`: it is not, so the list is to be read page by page. `gone`: nobody knows
   * the plan of the read any more, so it starts over. Absent if there is more to read.
   */
  ended?: 'whole' | 'broken' | 'gone'
}

/** The end of a segment of the rest of a read. */
export interface FinishResult extends ReadProgress {
  /** Set when the read is finished: the checkpoint to publish. */
  ended?: { verdict: 'proven' | 'unproven'; checkpoint: string }
  /** There are ranges left to read first. */
  isOpen?: true
}

/**
 * The three steps of a read. All of them resume from the last checkpoint, which is how retries, pauses and new runs after
 * a failure continue.
 */
export function createReads({ deps, rates }: { deps: ActivityDeps; rates: RunRates }) {
  /**
   * By folder: this process may still be running an attempt that Temporal has given up on; it is awaited first, because both
   * share a request budget.
   */
  const mutex = createKeyedMutex()

  const folderOf = ({ plan, resource }: ReadInput) =>
    partsFolder({ dataDir: deps.dataDir, run: plan.run, resource })
  const takeLeases = (context: StepContext, { plan, resource }: ReadInput) =>
    context.takeLeases(leasesOf({ resources: [resource], to: plan.to }))
  const onPage: SegmentSetup['onPage'] = (step) => deps.observer.onPage(step)

  /** Reads for a limited time, and shows how far it is. */
  async function readOn(
    context: StepContext,
    input: SegmentInput & { range?: number },
    work: Pick<SegmentSetup, 'folder' | 'from' | 'open'>,
  ): Promise<Checkpoint> {
    const { plan, resource, seconds, range } = input
    const { signal: cancelled } = context
    cancelled.throwIfAborted()
    let progress: Parameters<SegmentSetup['onProgress']>[0] | undefined
    context.report(() => ({ resource, ...(range !== undefined && { range: range + 1 }), ...progress }))
    const onProgress: SegmentSetup['onProgress'] = (now) => {
      progress = now
    }
    return await readSegment({
      deps,
      plan,
      resource,
      ...work,
      ms: seconds * 1000,
      cancelled,
      onProgress,
      onPage,
    })
  }

  /** The read from the service of one range, or of all documents by id. */
  function openRange(
    context: StepContext,
    input: ReadInput & { range: number; planned: ReadPlan; from: Checkpoint | undefined },
  ): SegmentSetup['open'] {
    const { plan, resource, range, planned, from } = input
    const billing = context.watch(rates.forRun(plan))
    const { signal: cancelled } = context
    if (isDocumentName(resource)) {
      const read = readById({
        resource,
        ids: requestedOf(plan).ids,
        fetchDocument: (id) => billing.getDocument(resource, id, { signal: cancelled }),
        testMode: plan.identity.mode === 'test',
        concurrency: deps.concurrency,
        now: () => deps.state.now(),
        state: from?.read as IdState | undefined,
      })
      return () => read
    }
    const { list } = planned
    const state = (from?.read as RangeState | undefined) ?? (list && startRange(list, list.ranges[range]!))
    if (state === undefined) throw new Error(`the plan of a read has no list ${resource}`)
    const options = toReadOptions({ deps, plan, resource, billing, cancelled })
    return (written) => readRange({ ...options, ...written, state })
  }

  /** Samples the statuses of a list and divides it into ranges, once; then says which of them are left. */
  async function planRead(context: StepContext, input: ReadInput): Promise<RangesProgress> {
    const { plan, resource } = input
    context.report(() => ({ resource }))
    await takeLeases(context, input)
    const folder = folderOf(input)
    const planned = await mutex.runExclusive(folder, () =>
      openReadPlan({
        deps,
        plan,
        resource,
        billing: context.watch(rates.forRun(plan)),
        cancelled: context.signal,
        onRequests: (pages) => onPage({ resource, pages, records: 0 }),
      }),
    )
    return await progressOf({ ...deps, folder, planned })
  }

  /** Reads one range, from its last checkpoint, for a limited time or to the end of the range. */
  async function readOneRange(context: StepContext, input: RangeInput): Promise<RangeResult> {
    const { plan, resource, range } = input
    context.report(() => ({ resource }))
    await takeLeases(context, input)
    const planned = await findReadPlan({ deps, plan, resource })
    const ranges = planned?.list?.ranges.length ?? 1
    if (planned === undefined || range >= ranges) return { records: 0, requests: 0, ended: 'gone' }
    const folder = rangeFolder(folderOf(input), range)
    return await mutex.runExclusive(folder, async () => {
      const from = await latestCheckpoint({ ...deps, folder })
      if (from !== undefined && hasEnded(from)) return toRangeResult(from)
      const open = openRange(context, { ...input, planned, from })
      const { range: number, ...whole } = input
      const last = await readOn(context, ranges > 1 ? { ...whole, range: number } : whole, {
        folder,
        from,
        open,
      })
      const result = toRangeResult(last)
      const { records, requests: page } = result
      const type = 'read' as const
      deps.observer.onEvent({
        type,
        run: plan.run,
        resource,
        page,
        records,
        ...(ranges > 1 && { range: range + 1 }),
      })
      return result
    })
  }

  /**
   * Finishes a read whose ranges have ended: looks for hidden records, reads page by page if a chain broke, and says
   * what is proven.
   */
  async function finishRead(context: StepContext, input: SegmentInput): Promise<FinishResult> {
    const { plan, resource } = input
    context.report(() => ({ resource }))
    await takeLeases(context, input)
    const planned = await findReadPlan({ deps, plan, resource })
    if (planned === undefined) return { records: 0, requests: 0, isOpen: true }
    const folder = folderOf(input)
    return await mutex.runExclusive(folder, async () => {
      const toOutcome = (state: IdState) => toIdOutcome(state, { resource, notes: requestedOf(plan).notes })
      const from =
        (await latestCheckpoint({ ...deps, folder })) ??
        (await joinParts({ ...deps, folder, planned, toIdOutcome: toOutcome }))
      if (from === undefined) return { records: 0, requests: 0, isOpen: true }
      if (from.outcome !== undefined || isDocumentName(resource)) return toFinishResult(from)
      const billing = context.watch(rates.forRun(plan))
      const options = toReadOptions({ deps, plan, resource, billing, cancelled: context.signal })
      const state = from.read as RangeState
      const last = await readOn(context, input, {
        folder,
        from,
        open: (written) => readList({ ...options, ...written, state }),
      })
      const result = toFinishResult(last)
      const { requests: page, records, ended } = result
      const verdict = ended && { verdict: ended.verdict }
      deps.observer.onEvent({ type: 'read', run: plan.run, resource, page, records, ...verdict })
      return result
    })
  }

  return { planRead, readRange: readOneRange, finishRead }
}

function requestedOf({ run, requested }: ExportPlan) {
  if (requested === undefined) throw new Error(`the run ${run} has no ids to fetch`)
  return requested
}

const isBroken = (read: AnyReadState) => 'phase' in read && read.phase === 'pages'

const toRangeResult = (checkpoint: Checkpoint): RangeResult => ({
  ...toProgress(checkpoint.read),
  ...(hasEnded(checkpoint) && { ended: isBroken(checkpoint.read) ? 'broken' : 'whole' }),
})

const toFinishResult = ({ name, read, outcome }: Checkpoint): FinishResult => ({
  ...toProgress(read),
  ...(outcome !== undefined && { ended: { verdict: outcome.verdict, checkpoint: name } }),
})
