import type { Billing } from '../billing/client.ts'
import { listResources } from '../billing/resources/lists.ts'
import { readList } from '../reading/read-list.ts'
import type { ReadOutcome } from '../reading/outcome.ts'
import type { ReadState, ReadStep } from '../reading/state.ts'
import { createRowEncoder } from '../tables/row-encoder.ts'
import { nextCheckpointName, saveCheckpoint, type Checkpoint } from './checkpoint.ts'
import type { ActivityDeps } from './deps.ts'
import { openIdSet, type WrittenSet } from './id-set.ts'
import type { ExportPlan } from './open-export.ts'
import { openPartFiles } from './part-files.ts'

/** How often what was read is made durable: this much is read again after a crash. */
const checkpointMs = 1_000

/** The parts "table" of what is no record: it becomes `rejected.jsonl`. */
export const rejectedPart = 'rejected'

export interface SegmentSetup {
  deps: ActivityDeps
  plan: ExportPlan
  resource: ExportPlan['resources'][number]
  folder: string
  from: Checkpoint | undefined
  billing: Billing
  cancelled: AbortSignal
}

/** One attempt at reading on: from the service through the encoder into part files, with a note every second. */
export function openSegment({ deps, plan, resource, folder, from, billing, cancelled }: SegmentSetup) {
  const list = listResources[resource]
  const name = nextCheckpointName(from)
  const { exclude, hash } = plan
  const encoder = createRowEncoder({ resource: list, privacy: { exclude, hash, hashKey: deps.hashKey } })
  const files = openPartFiles({ folder, name, kept: from?.parts ?? [] })
  const drift: Record<string, number> = { ...from?.drift }
  let idSet: WrittenSet | undefined
  let taken: ReadState | undefined = from?.read
  let progress: ReadStep['progress'] | undefined
  let counted = { pages: from?.read.requests.made ?? 0, records: from?.read.counts.records ?? 0 }

  const read = readList({
    resource: list,
    filters: plan.filters,
    testMode: plan.identity.mode === 'test',
    concurrency: deps.concurrency,
    readLagMs: deps.readLagMs,
    now: Date.now,
    fetchPage: ({ signal, ...page }) =>
      billing.list({ resource: list, signal: AbortSignal.any([signal, cancelled]), ...page }),
    idSet: async () => {
      const parts = await files.settle()
      idSet = await openIdSet({
        folder,
        name,
        parts: partsOf(resource, parts),
        rejected: partsOf(rejectedPart, parts),
        toWritten: encoder.toWrittenId,
      })
      return idSet
    },
    ...(plan.since[resource] !== undefined && { updatedSince: plan.since[resource] }),
    ...(plan.servedAt !== undefined && { serviceTime: plan.servedAt }),
    ...(plan.maxPages !== undefined && { maxRequests: plan.maxPages }),
    ...(from !== undefined && { state: from.read }),
  })

  async function take(step: ReadStep): Promise<void> {
    // Of a step that fails in the middle some rows may be in the files: no note may speak of them.
    taken = undefined
    const rows = encoder.encode(step.records)
    for (const [at, { text, rows: count }] of rows.tables.entries()) {
      if (count > 0) await files.append({ table: encoder.tables[at]!.name, text, count })
    }
    const rejected = encoder.encode(step.rejected).rejected
    for (const { text, rows: count } of [rows.rejected, rejected]) {
      if (count > 0) await appendRejected(text)
    }
    for (const [field, count] of Object.entries(rows.drift)) drift[field] = (drift[field] ?? 0) + count
    taken = step.state
    progress = step.progress
  }

  /** What has no id is known again by all that it is, where the read may meet it twice. */
  async function appendRejected(text: string): Promise<void> {
    const lines = text.split('\n').slice(0, -1)
    const isNew = idSet?.addLines(lines)
    const fresh = isNew === undefined ? lines : lines.filter((_, at) => isNew[at])
    if (fresh.length === 0) return
    await files.append({ table: rejectedPart, text: `${fresh.join('\n')}\n`, count: fresh.length })
  }

  /** Tells what came since it was told last. */
  function tell(now: typeof counted): void {
    const { pages, records } = counted
    deps.observer.took({ resource, pages: now.pages - pages, records: now.records - records })
    counted = now
  }

  async function save(state: ReadState, outcome?: ReadOutcome): Promise<Checkpoint> {
    const parts = await files.settle()
    const savedAt = new Date().toISOString()
    const checkpoint = { name, parts, drift, read: state, savedAt, ...(outcome && { outcome }) }
    await saveCheckpoint(folder, checkpoint)
    return checkpoint
  }

  return {
    progress: () => ({ resource, ...progress }),

    /** Reads until the list is done or the time is over. Throws the cancellation's own reason. */
    async readFor(ms: number): Promise<Checkpoint> {
      const until = performance.now() + ms
      let savedAt = performance.now()
      try {
        for (;;) {
          const next = await read.next()
          if (next.done === true) {
            if (taken === undefined) throw new Error('a read ended without a single response')
            tell({ pages: next.value.requests, records: next.value.records })
            return await save(taken, next.value)
          }
          await take(next.value)
          tell({ pages: next.value.progress.requests, records: next.value.progress.records })
          cancelled.throwIfAborted()
          const now = performance.now()
          if (now < savedAt + checkpointMs) continue
          savedAt = now
          const saved = await save(next.value.state)
          if (now > until) return saved
        }
      } catch (error) {
        // What was taken before a failure is good: the next attempt goes on behind it.
        if (taken !== undefined && taken !== from?.read) await save(taken)
        throw cancelled.aborted ? cancelled.reason : error
      }
    },

    async close(): Promise<void> {
      await read.return(undefined as never).catch(() => undefined)
      await files.close()
      await idSet?.close()
    },
  }
}

const partsOf = <Part extends { table: string }>(table: string, parts: readonly Part[]) =>
  parts.filter((part) => part.table === table)
