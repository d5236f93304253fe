import type { Billing, Body } from '../billing/client.ts'
import { plans } from '../billing/resources/catalog.ts'
import type { ListResource } from '../billing/resources/filters.ts'
import { subscriptions } from '../billing/resources/subscriptions.ts'
import { textOf } from '../changes/compare-fields.ts'
import type { PageRequest } from '../reading/range-state.ts'
import { readInMemory } from '../reading/read-list.ts'
import { outwardMessage } from '../runs/errors.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import { addPrices, type ListValue, noPrices, type PlanPrices, toListValue } from './list-value.ts'

/** A subscription that needs attention: the body of its change, with what is needed to find it and to report on it. */
export type Candidate = {
  id: string
  customer: string
  /** The id of its first line, which finds the subscription in one small request. */
  line?: string
  collection_scheme: string
  /** The date to send. */
  next_billing?: string
  /** As the list had it. */
  snapshot: {
    /** Empty if it has none. */
    reason: string
    /** Since when it needs attention, as the service wrote it. */
    since: string
    next_billing: string
    value: ListValue
  }
}

/** What is kept of a record until the prices are known. */
const keep = (record: Body): Body => Object.fromEntries(neededFields.map((field) => [field, record[field]]))
const neededFields = [
  'id',
  'customer',
  'lines',
  'coupon',
  'addons',
  'needs_attention_reason',
  'needs_attention',
  'collection_scheme',
  'next_billing',
]

function toCandidate(record: Body, prices: PlanPrices): Candidate {
  const lines = record['lines']
  const first: unknown = Array.isArray(lines) ? lines[0] : undefined
  const line = textOf((first as Body | null | undefined)?.['id'])
  return {
    id: textOf(record['id']),
    customer: textOf(record['customer']),
    ...(line !== '' && { line }),
    collection_scheme: textOf(record['collection_scheme']),
    snapshot: {
      reason: textOf(record['needs_attention_reason']),
      since: textOf(record['needs_attention']),
      next_billing: textOf(record['next_billing']),
      value: toListValue(record, prices),
    },
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
  /** The most list requests, including failed ones, across all calls for this run. The list of plans gets what is left. */
  maxPages: number
  signal: AbortSignal
  onProgress?: (progress: { candidates: number; requests: number }) => void
}): Promise<CandidateRead> {
  const { run, notes, billing, testMode, readLagMs, maxPages, signal, onProgress } = options
  let { requests = 0 } = await notes.read<{ requests: number }>(run)
  const fetchFrom = (resource: ListResource) => async (page: PageRequest) =>
    await billing.list({
      resource,
      ...page,
      signal,
      async beforeSend() {
        if (requests >= maxPages) throw new PagesUsedUp()
        requests += 1
        // A kill forgets no request.
        await notes.write(run, { requests })
      },
    })
  const readWhole = (resource: ListResource, filters = {}) =>
    readInMemory({ resource, filters, testMode, fetchPage: fetchFrom(resource), readLagMs })
  const found: Body[] = []
  const read = readWhole(subscriptions, { status: 'needs_attention' })
  let last: { countBefore?: number | undefined; reasons: string[] } | undefined
  for (;;) {
    const step = await read.next().catch((error: unknown) => {
      if (error instanceof PagesUsedUp) return undefined
      throw error
    })
    if (step === undefined || step.done === true) {
      const outcome = step?.value
      const prices = found.length === 0 ? noPrices : await readPrices(readWhole(plans), signal)
      return {
        candidates: found.map((record) => toCandidate(record, prices)),
        proven: outcome?.verdict === 'proven',
        reasons: outcome?.reasons ?? [
          `maxPages (${maxPages}) was used up before the end of the list; requests that failed count, too`,
          ...(last?.reasons ?? []),
        ],
        capped: outcome === undefined,
        requests,
        count: (outcome ?? last)?.countBefore ?? undefined,
      }
    }
    const { records, state } = step.value
    last = state
    found.push(...records.filter(({ status }) => status === 'needs_attention').map(keep))
    onProgress?.({ candidates: found.length, requests })
  }
}

/** Reads the prices of all plans. Money is told, not decided by them: a recovery does not fail without them. */
async function readPrices(read: ReturnType<typeof readInMemory>, signal: AbortSignal): Promise<PlanPrices> {
  const prices: PlanPrices['prices'] = new Map()
  try {
    for await (const { records } of read) addPrices(prices, records)
    return { prices, otherwise: 'a plan is not in the list of plans' }
  } catch (error) {
    signal.throwIfAborted()
    const why =
      error instanceof PagesUsedUp ? 'maxPages was used up before their end' : outwardMessage(error as Error)
    return { prices, otherwise: `the plans were not read completely: ${why}` }
  }
}
