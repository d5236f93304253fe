import type { Billing, Body } from '../billing/client.ts'
import { subscriptions } from '../billing/resources/subscriptions.ts'
import { textOf } from '../changes/compare-fields.ts'
import { readList } from '../reading/read-list.ts'
import type { RunNotes } from '../runs/run-notes.ts'

/** A subscription that needs attention, as of the snapshot. */
export interface Candidate {
  id: string
  customer: string
  /** The id of its first line, which finds the subscription in one small request. */
  line?: string
  /** Empty if it has none. */
  reason: string
  /** Since when it needs attention, as the service wrote it. */
  since: string
  scheme: string
  nextBilling: string
}

/** Reads a candidate from a record; undefined if the record needs no attention. */
function toCandidate(record: Readonly<Record<string, unknown>>): Candidate | undefined {
  if (record['status'] !== 'needs_attention') return undefined
  const lines = record['lines']
  const first: unknown = Array.isArray(lines) ? lines[0] : undefined
  const line = textOf((first as Body | null | undefined)?.['id'])
  return {
    id: textOf(record['id']),
    customer: textOf(record['customer']),
    ...(line !== '' && { line }),
    reason: textOf(record['needs_attention_reason']),
    since: textOf(record['needs_attention']),
    scheme: textOf(record['collection_scheme']),
    nextBilling: textOf(record['next_billing']),
  }
}

/** A candidate for the ledger: what is needed to find it and to report on it. `fromBody` reads it. */
export function toBody(candidate: Candidate, nextBilling: string | undefined): Body {
  const { id, customer, line, reason, since, scheme, nextBilling: billed } = candidate
  return {
    id,
    customer,
    ...(line !== undefined && { line }),
    collection_scheme: scheme,
    ...(nextBilling !== undefined && { next_billing: nextBilling }),
    snapshot: { reason, since, next_billing: billed },
  }
}

/** Restores a candidate from its ledger row. */
export function fromBody(body: Body): Candidate {
  const snapshot = (body['snapshot'] ?? {}) as Body
  const line = textOf(body['line'])
  return {
    id: textOf(body['id']),
    customer: textOf(body['customer']),
    ...(line !== '' && { line }),
    reason: textOf(snapshot['reason']),
    since: textOf(snapshot['since']),
    scheme: textOf(body['collection_scheme']),
    nextBilling: textOf(snapshot['next_billing']),
  }
}

export interface CandidateRead {
  candidates: Candidate[]
  /** Whether the list was read completely: every subscription that needed attention throughout the read is included. */
  proven: boolean
  /** Why the read is not proven, one sentence each; empty if it is. */
  reasons: string[]
  /** Whether `maxPages` was reached before the end of the list. */
  capped: boolean
  requests: number
  /** The service's own count; only a hint. */
  count: number | undefined
}

/** The list requests of all attempts, each counted before it leaves, and how many of them failed. */
export interface RequestCounts {
  sent: number
  failed: number
}

/** `maxPages` is used up: what was read so far is the snapshot. */
class PagesUsedUp extends Error {
  override readonly name = 'PagesUsedUp'
}

/**
 * Reads the subscriptions that need attention and writes nothing to the service. The result includes every
 * subscription that needed attention throughout the read, or the reasons say why that is not proven. Resuming
 * removes a subscription from this list, so the whole read comes before the first resume.
 *
 * A read that is interrupted starts again, with what is left of its requests.
 */
export async function readCandidates(options: {
  run: string
  notes: RunNotes
  /** Limited to the run's share of the rate. */
  billing: Billing
  testMode: boolean
  readLagMs: number
  /** The most list requests, including failed ones, across all calls for this run. */
  maxPages: number
  signal: AbortSignal
  onProgress?: (progress: { candidates: number; requests: number }) => void
}): Promise<CandidateRead> {
  const { run, notes, billing, testMode, readLagMs, maxPages, signal, onProgress } = options
  const { requests: before = { sent: 0, failed: 0 } } = await notes.read<{ requests: RequestCounts }>(run)
  const lost = before.sent - before.failed
  const requests = { ...before }
  let written = Promise.resolve()
  /** Resolves when the count is durable: a kill forgets no request. */
  const count = (what: keyof typeof requests) => {
    requests[what] += 1
    return (written = written.then(() => notes.write(run, { requests })))
  }
  const candidates: Candidate[] = []
  const ids = new Set<string>()
  const read = readList({
    resource: subscriptions,
    filters: { status: 'needs_attention' },
    testMode,
    fetchPage: async (page) =>
      await billing.list({
        resource: subscriptions,
        ...page,
        signal,
        async beforeSend() {
          if (requests.sent >= maxPages) throw new PagesUsedUp()
          await count('sent')
        },
        onFailure: () => count('failed'),
      }),
    readLagMs,
    now: Date.now,
    idSet: async () => ({ add: (added) => added.map(({ id }) => ids.size !== ids.add(id).size) }),
  })
  let last: { countBefore?: number | undefined; reasons: string[] } | undefined
  for (;;) {
    const step = await read.next().catch((error: unknown) => {
      if (error instanceof PagesUsedUp) return undefined
      throw error
    })
    if (step === undefined || step.done === true) {
      const outcome = step?.value
      const capped = whyCapped({ maxPages, failed: requests.failed, lost })
      return {
        candidates,
        proven: outcome?.verdict === 'proven',
        reasons: outcome?.reasons ?? [capped, ...(last?.reasons ?? [])],
        capped: outcome === undefined,
        requests: requests.sent,
        count: (outcome ?? last)?.countBefore ?? undefined,
      }
    }
    const { records, state } = step.value
    last = state
    candidates.push(...records.flatMap((record) => toCandidate(record) ?? []))
    onProgress?.({ candidates: candidates.length, requests: requests.sent })
  }
}

function whyCapped({ maxPages, failed, lost }: { maxPages: number; failed: number; lost: number }): string {
  if (failed + lost === 0) return `the list takes more than ${maxPages} requests (maxPages)`
  const ended = [
    { count: failed, how: 'failed' },
    { count: lost, how: `${lost === 1 ? 'was' : 'were'} lost when the read was interrupted` },
  ]
    .filter(({ count }) => count > 0)
    .map(({ count, how }, at) => {
      const number = count === maxPages ? 'all' : count
      return at === 0 ? `${number} of these requests ${how}` : `${number} ${how}`
    })
  return `maxPages (${maxPages}) was used up before the end of the list: ${ended.join(', and ')}`
}
