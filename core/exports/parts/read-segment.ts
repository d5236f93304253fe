import { allResources } from '../../billing/resources/lists.ts'
import type { PartFile } from '../../destinations/destination.ts'
import { escapeId, writeLines } from '../../reading/certificate.ts'
import type { IdOutcome, IdStep } from '../../reading/read-by-id.ts'
import type { ReadOutcome } from '../../reading/outcome.ts'
import type { ReadOptions, ReadStep } from '../../reading/range-state.ts'
import { idOf } from '../../reading/record.ts'
import { addDrift, noDrift } from '../../tables/drift.ts'
import { addTotals, noTotals } from '../../tables/totals.ts'
import { createRowEncoder } from '../../tables/row-encoder.ts'
import type { ExportPlan } from '../plan.ts'
import {
  type AnyReadState,
  type Checkpoint,
  nameAttempt,
  nameOf,
  type ReadProgress,
  saveCheckpoint,
  toProgress,
} from './checkpoint.ts'
import { certificatePart, fetchParts, missingPart, openChunks, rejectedPart } from './chunks.ts'
import type { ReadDeps } from './read-plan.ts'
import { findRepeatedIds, openIdSet, type WrittenSet } from './written-ids.ts'

/** After either, there is a checkpoint. What was read since is read again after a crash. */
const checkpointEvery = { ms: 5_000, bytes: 16 * 2 ** 20 }

/** Lets a read look up what it has written so far. */
export type Written = Required<Pick<ReadOptions, 'idSet' | 'repeatedIds'>>

/** An active read; close it with its `return`. Only the end of a whole read has an outcome. */
export type Source = AsyncGenerator<ReadStep | IdStep, ReadOutcome | IdOutcome | void>

export interface SegmentSetup {
  deps: ReadDeps
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  /** The folder for the parts and checkpoints: of the read, or of one of its ranges. */
  folder: string
  from: Checkpoint | undefined
  /** Opens the read from the service, which starts from that checkpoint. */
  open: (written: Written) => Source
  /** How long to read. */
  ms: number
  cancelled: AbortSignal
  onProgress: (progress: ReadProgress) => void
  /** Called after list responses were received and their records written. */
  onPage: (step: { resource: ExportPlan['resources'][number]; pages: number; records: number }) => void
}

/**
 * One attempt at a segment of a list, of one of its ranges, or of documents by id: reads from the service through the
 * encoder into chunks, with a checkpoint every 5 s, to the end or until the time is up. Returns the last checkpoint.
 *
 * @throws the cancellation's own reason
 */
export async function readSegment(setup: SegmentSetup): Promise<Checkpoint> {
  const { deps, plan, resource, folder, from, cancelled } = setup
  const { shared } = deps
  const name = nameAttempt(from)
  const privacy = { exclude: plan.exclude, hash: plan.hash, hashKey: deps.hashKey }
  const encoder = createRowEncoder({ resource: allResources[resource], privacy })
  const chunks = openChunks({ folder, name })
  const parts = [...(from?.parts ?? [])]
  /** How many of the parts are kept. */
  let kept = parts.length
  let saves = 0
  /** The checkpoint that is being kept. */
  let saving: Promise<void> = Promise.resolve()
  const drift = noDrift()
  const totals = noTotals()
  if (from !== undefined) addDrift(drift, from.drift)
  if (from !== undefined) addTotals(totals, from.totals)
  let written: WrittenSet | undefined
  let taken: AnyReadState | undefined = from?.read
  let counted = { pages: from?.read.counts.requests ?? 0, records: from?.read.counts.records ?? 0 }

  /** All parts, where they can be read: the folder may be cleaned up before the store has the last chunk. */
  async function settled(): Promise<readonly PartFile[]> {
    await saving
    parts.push(...(await chunks.close()))
    await keepParts(parts)
    await fetchParts({ ...deps, parts, signal: cancelled })
    return parts
  }

  const read = setup.open({
    async idSet() {
      const all = await settled()
      const { columns } = encoder.tables[0]!
      written = await openIdSet({
        folder,
        name,
        parts: all.filter(({ table }) => table === resource),
        rejected: all.filter(({ table }) => table === rejectedPart),
        toWritten: encoder.toWrittenId,
        created: columns.findIndex((column) => column.name === 'created'),
      })
      return written
    },
    repeatedIds: async () => findRepeatedIds((await settled()).filter(({ table }) => table === resource)),
  })

  const append = async (table: string, { text, rows: count }: { text: string; rows: number }) => {
    if (count > 0) await chunks.append({ table, text, count })
  }

  async function take(step: ReadStep | IdStep): Promise<void> {
    // If a step fails halfway, some of its rows may be in the files: no checkpoint may include them.
    taken = undefined
    const rows = encoder.encode(step.records)
    for (const [at, table] of rows.tables.entries()) await append(encoder.tables[at]!.name, table)
    await appendRejected(rows.rejected.text)
    if ('missing' in step) {
      const open = step.open.map(({ id, why }) => `${JSON.stringify({ reason: why, record: { id } })}\n`)
      await appendRejected(open.join(''))
      const missing = step.missing.map((id) => `${id}\n`)
      await append(missingPart, { text: missing.join(''), rows: missing.length })
    } else {
      await appendRejected(encoder.encode(step.rejected).rejected.text)
      const { toWrittenId } = encoder
      const written = step.records.map((record, at) => {
        const below = rows.below[at]
        return below === undefined ? undefined : `${escapeId(toWrittenId(idOf(record) ?? ''))}${below}`
      })
      const text = writeLines(step.lines, { written, toWritten: toWrittenId })
      await append(certificatePart, { text, rows: step.lines.length })
    }
    addDrift(drift, rows.drift)
    addTotals(totals, rows.totals)
    taken = step.state
    setup.onProgress(toProgress(step.state))
    tell(step.state.counts)
  }

  /** A rejected record has no id, so it is identified by its content where the read may meet it twice. */
  async function appendRejected(text: string): Promise<void> {
    const lines = text.split('\n').slice(0, -1)
    const isNew = written?.addLines(lines)
    const fresh = isNew === undefined ? lines : lines.filter((_, at) => isNew[at])
    await append(rejectedPart, { text: fresh.map((line) => `${line}\n`).join(''), rows: fresh.length })
  }

  /** Reports what was read since the last report. */
  function tell({ requests: pages, records }: { requests: number; records: number }): void {
    setup.onPage({ resource, pages: pages - counted.pages, records: records - counted.records })
    counted = { pages, records }
  }

  async function closeChunks(read: AnyReadState, last?: Pick<Checkpoint, 'outcome'>): Promise<Checkpoint> {
    parts.push(...(await chunks.close()))
    saves += 1
    return {
      name: nameOf({ attempt: name, saves, isLast: last !== undefined }),
      parts: [...parts],
      drift: structuredClone(drift),
      totals: structuredClone(totals),
      read,
      savedAt: new Date(deps.state.now()).toISOString(),
      ...last,
    }
  }

  async function keep(checkpoint: Checkpoint): Promise<void> {
    await keepParts(checkpoint.parts)
    await saveCheckpoint({ shared, folder, checkpoint, from })
  }

  async function keepParts(parts: readonly PartFile[]): Promise<void> {
    for (; kept < parts.length; kept += 1) await shared.keep(parts[kept]!.path)
  }

  async function save(state: AnyReadState, last?: Pick<Checkpoint, 'outcome'>): Promise<Checkpoint> {
    await saving
    const checkpoint = await closeChunks(state, last)
    await keep(checkpoint)
    return checkpoint
  }

  const until = performance.now() + setup.ms
  let savedAt = performance.now()
  try {
    for (;;) {
      const next = await read.next()
      if (next.done === true) {
        if (taken === undefined) throw new Error('a read ended without a single response')
        const outcome = next.value
        // An outcome also counts what was requested after the last records.
        tell(outcome ?? taken.counts)
        return await save(taken, outcome === undefined ? {} : { outcome })
      }
      await take(next.value)
      cancelled.throwIfAborted()
      // The error must not be lost with the time that it took.
      if ('fails' in next.value) continue
      const now = performance.now()
      if (now - savedAt < checkpointEvery.ms && chunks.waiting() < checkpointEvery.bytes) continue
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
  } finally {
    await read.return(undefined as never).catch(() => undefined)
    await chunks.abandon()
    await written?.close()
  }
}
