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

interface PartInput extends ReadInput {
  /** The number of a range, from 0 for the newest; without it, what is left to do once all ranges have ended. */
  range?: number
  /** How long to read before reporting back to the workflow. */
  seconds: number
}

/** The end of a segment of a range, or of the rest of a read. */
export interface PartResult extends ReadProgress {
  /**
   * Of a range, `whole`: its chain is unbroken; `broken`: it is not, so the list is to be read page by page. Of the rest, the
   * checkpoint to publish. `gone`: nobody knows the plan of the read any more, or ranges are left, so it is planned again.
   * Absent if there is more to read.
   */
  ended?: 'whole' | 'broken' | 'gone' | { verdict: 'proven' | 'unproven'; checkpoint: string }
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

  /** The read from the service of a part: a range, all documents by id, or what is left to do of a list. */
  function openPart(
    { signal: cancelled, watch }: StepContext,
    input: PartInput & { planned: ReadPlan; from: Checkpoint | undefined },
  ): SegmentSetup['open'] {
    const { plan, resource, range, planned, from } = input
    const billing = watch(rates.forRun(plan))
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
    const begun = from?.read as RangeState | undefined
    const state = begun ?? (list && range !== undefined ? startRange(list, list.ranges[range]!) : undefined)
    if (state === undefined) throw new Error(`the plan of a read has no list ${resource}`)
    const options = toReadOptions({ deps, plan, resource, billing, cancelled })
    const read = range === undefined ? readList : readRange
    return (written) => read({ ...options, ...written, state })
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

  /**
   * Reads a range, or finishes a read whose ranges have ended: looks for hidden records, reads page by page if a chain broke,
   * and says what is proven. From its last checkpoint, for a limited time or to its end.
   */
  async function readPart(context: StepContext, input: PartInput): Promise<PartResult> {
    const { plan, resource, range, seconds } = input
    const { signal: cancelled } = context
    context.report(() => ({ resource }))
    await takeLeases(context, input)
    const planned = await findReadPlan({ deps, plan, resource })
    const ranges = planned?.list?.ranges.length ?? 1
    const gone = { records: 0, requests: 0, ended: 'gone' } as const
    if (planned === undefined || (range ?? 0) >= ranges) return gone
    const whole = folderOf(input)
    const folder = range === undefined ? whole : rangeFolder(whole, range)
    return await mutex.runExclusive(folder, async () => {
      const toOutcome = (state: IdState) => toIdOutcome(state, { resource, notes: requestedOf(plan).notes })
      const from =
        (await latestCheckpoint({ ...deps, folder })) ??
        (range === undefined
          ? await joinParts({ ...deps, folder, planned, toIdOutcome: toOutcome })
          : undefined)
      if (range === undefined && from === undefined) return gone
      if (from !== undefined && hasEnded(from)) return toResult(from)
      const open = openPart(context, { ...input, planned, from })
      cancelled.throwIfAborted()
      const one = range !== undefined && ranges > 1 ? { range: range + 1 } : {}
      let progress: ReadProgress | undefined
      context.report(() => ({ resource, ...one, ...progress }))
      const last = await readSegment({
        deps,
        plan,
        resource,
        folder,
        from,
        open,
        ms: seconds * 1000,
        cancelled,
        onProgress: (now) => (progress = now),
        onPage,
      })
      const result = toResult(last)
      const { records, requests: page, ended } = result
      const verdict = typeof ended === 'object' && { verdict: ended.verdict }
      deps.observer.onEvent({ type: 'read', run: plan.run, resource, page, records, ...one, ...verdict })
      return result
    })
  }

  return { planRead, readRange: readPart, finishRead: readPart }
}

function requestedOf({ run, requested }: ExportPlan) {
  if (requested === undefined) throw new Error(`the run ${run} has no ids to fetch`)
  return requested
}

const isBroken = (read: AnyReadState) => 'phase' in read && read.phase === 'pages'

const toResult = (checkpoint: Checkpoint): PartResult => {
  const { name, read, outcome } = checkpoint
  const progress = toProgress(read)
  if (outcome !== undefined) return { ...progress, ended: { verdict: outcome.verdict, checkpoint: name } }
  return { ...progress, ...(hasEnded(checkpoint) && { ended: isBroken(read) ? 'broken' : 'whole' }) }
}
