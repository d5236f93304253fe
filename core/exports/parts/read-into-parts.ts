import type { Billing } from '../../billing/client.ts'
import { allResources, isDocumentName } from '../../billing/resources/lists.ts'
import type { PartFile } from '../../destinations/destination.ts'
import type { Progress, RangeState } from '../../reading/range-state.ts'
import { addDrift, noDrift } from '../../tables/drift.ts'
import { createRowEncoder } from '../../tables/row-encoder.ts'
import {
  nameAttempt,
  nameOf,
  saveCheckpoint,
  toProgress,
  type AnyOutcome,
  type AnyReadState,
  type Checkpoint,
} from './checkpoint.ts'
import type { ExportPlan } from '../plan.ts'
import type { WrittenSet } from './written-ids.ts'
import { missingPart, openChunks, rejectedPart } from './chunks.ts'
import { readFromIds } from './id-source.ts'
import { type FirstLook, readFromList, readFromRange } from './list-source.ts'
import type { ReadDeps, Source, SourceSetup, SourceStep } from './source.ts'

/** After either, there is a checkpoint. What was read since is read again after a crash. */
const checkpointEvery = { ms: 5_000, bytes: 16 * 2 ** 20 }

export interface SegmentSetup {
  deps: ReadDeps
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  folder: string
  from: Checkpoint | undefined
  /** What the list showed before its read began; for a read without a checkpoint. */
  first?: FirstLook | undefined
  /** Set for a range of the list: its number, and the state that it starts from. */
  range?: { number: number; start: RangeState }
  billing: Billing
  cancelled: AbortSignal
  /** Called after list responses were received and their records written. */
  onPage: (step: { resource: ExportPlan['resources'][number]; pages: number; records: number }) => void
}

/**
 * Opens one attempt at a segment: reads from the service through the encoder into chunks, with a checkpoint every 5 s.
 */
export function openSegment(setup: SegmentSetup) {
  const { deps, plan, resource, folder, from, cancelled } = setup
  const { shared } = deps
  const name = nameAttempt(from)
  const { exclude, hash } = plan
  const encoder = createRowEncoder({
    resource: allResources[resource],
    privacy: { exclude, hash, hashKey: deps.hashKey },
  })
  const chunks = openChunks({ folder, name })
  const parts = [...(from?.parts ?? [])]
  /** How many of the parts are kept. */
  let kept = parts.length
  let saves = 0
  /** The checkpoint that is being kept. */
  let saving: Promise<void> = Promise.resolve()
  const drift = noDrift()
  if (from !== undefined) addDrift(drift, from.drift)
  let written: WrittenSet | undefined
  let taken: AnyReadState | undefined = from?.read
  let progress: Progress | undefined
  let counted = { pages: from?.read.requests.made ?? 0, records: from?.read.counts.records ?? 0 }
  const read = openSource({
    ...setup,
    name,
    settled,
    toWritten: encoder.toWrittenId,
    onWritten: (set) => {
      written = set
    },
  })

  const append = async (table: string, { text, rows: count }: { text: string; rows: number }) => {
    if (count > 0) await chunks.append({ table, text, count })
  }

  async function take(step: SourceStep): Promise<void> {
    const { missing = [], open = [] } = step
    // If a step fails halfway, some of its rows may be in the files: no checkpoint may include them.
    taken = undefined
    const rows = encoder.encode(step.records)
    for (const [at, table] of rows.tables.entries()) await append(encoder.tables[at]!.name, table)
    for (const rejected of [rows.rejected, encoder.encode(step.rejected).rejected, toLines(open)])
      if (rejected.rows > 0) await appendRejected(rejected.text)
    await append(missingPart, { text: missing.map((id) => `${id}\n`).join(''), rows: missing.length })
    addDrift(drift, rows.drift)
    taken = step.state
    progress = step.progress
  }

  /** A rejected record has no id, so it is identified by its content where the read may meet it twice. */
  async function appendRejected(text: string): Promise<void> {
    const lines = text.split('\n').slice(0, -1)
    const isNew = written?.addLines(lines)
    const fresh = isNew === undefined ? lines : lines.filter((_, at) => isNew[at])
    if (fresh.length === 0) return
    await chunks.append({ table: rejectedPart, text: `${fresh.join('\n')}\n`, count: fresh.length })
  }

  /** Reports what was read since the last report. */
  function tell(now: typeof counted): void {
    const { pages, records } = counted
    setup.onPage({ resource, pages: now.pages - pages, records: now.records - records })
    counted = now
  }

  async function save(state: AnyReadState, last?: { outcome: AnyOutcome | undefined }): Promise<Checkpoint> {
    await saving
    const checkpoint = await closeChunks(state, last)
    await keep(checkpoint)
    return checkpoint
  }

  /** What was taken, where it can be read: the folder may be cleaned up before the store has the last chunk. */
  async function settled(): Promise<readonly PartFile[]> {
    await saving
    parts.push(...(await chunks.close()))
    await keepParts(parts)
    return parts
  }

  async function closeChunks(
    state: AnyReadState,
    last?: { outcome: AnyOutcome | undefined },
  ): Promise<Checkpoint> {
    parts.push(...(await chunks.close()))
    saves += 1
    return {
      name: nameOf({ attempt: name, saves, isLast: last !== undefined }),
      parts: [...parts],
      drift: structuredClone(drift),
      read: state,
      savedAt: new Date(deps.state.now()).toISOString(),
      ...(last?.outcome && { outcome: last.outcome }),
    }
  }

  async function keep(checkpoint: Checkpoint): Promise<void> {
    await keepParts(checkpoint.parts)
    await saveCheckpoint({ shared, folder, checkpoint, from })
  }

  async function keepParts(parts: readonly PartFile[]): Promise<void> {
    for (; kept < parts.length; kept += 1) await shared.keep(parts[kept]!.path)
  }

  const isDue = (sinceMs: number) =>
    sinceMs >= checkpointEvery.ms || chunks.waiting() >= checkpointEvery.bytes

  return {
    progress: () => ({ resource, ...(setup.range && { range: setup.range.number + 1 }), ...progress }),

    /**
     * Reads until the list is finished or the time is up.
     *
     * @throws the cancellation's own reason
     */
    async readFor(ms: number): Promise<Checkpoint> {
      const until = performance.now() + ms
      let savedAt = performance.now()
      try {
        for (;;) {
          const next = await read.next()
          if (next.done === true) {
            if (taken === undefined) throw new Error('a read ended without a single response')
            // An outcome also counts what was requested after the last records.
            const { requests: pages, records } = next.value ?? toProgress(taken)
            tell({ pages, records })
            return await save(taken, { outcome: next.value })
          }
          await take(next.value)
          tell({ pages: next.value.progress.requests, records: next.value.progress.records })
          cancelled.throwIfAborted()
          const now = performance.now()
          if (!isDue(now - savedAt)) continue
          if (now > until) return await save(next.value.state)
          await saving
          saving = keep(await closeChunks(next.value.state))
          // While the store takes what was read, the read continues.
          saving.catch(() => undefined)
          // Not before the waits: where they take longer than the interval, each step would be a checkpoint.
          savedAt = performance.now()
        }
      } catch (error) {
        await saving.catch(() => undefined)
        saving = Promise.resolve()
        // Everything read before a failure is valid: the next attempt resumes after it.
        if (taken !== undefined && taken !== from?.read) await save(taken)
        throw cancelled.aborted ? cancelled.reason : error
      }
    },

    async close(): Promise<void> {
      await read.return(undefined as never).catch(() => undefined)
      await saving.catch(() => undefined)
      await chunks.abandon()
    },
  }
}

function openSource(setup: SourceSetup & Pick<SegmentSetup, 'resource' | 'first' | 'range'>): Source {
  const { plan, resource, first, range } = setup
  if (!isDocumentName(resource) && range !== undefined)
    return readFromRange({ ...setup, resource, start: range.start })
  if (!isDocumentName(resource)) return readFromList({ ...setup, resource, first })
  if (plan.ids === undefined) throw new Error(`${resource} can only be read by id`)
  return readFromIds({ ...setup, resource, ids: plan.ids })
}

function toLines(open: readonly { id: string; why: string }[]): { text: string; rows: number } {
  const lines = open.map(({ id, why }) => `${JSON.stringify({ reason: why, record: { id } })}\n`)
  return { text: lines.join(''), rows: lines.length }
}
