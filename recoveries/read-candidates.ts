import type { Billing } from '../billing/client.ts'
import { subscriptions } from '../billing/resources/subscriptions.ts'
import { readList } from '../reading/read-list.ts'
import { type Candidate, toCandidate } from './candidate.ts'
import { openJournal } from './journal.ts'

interface ReadOptions {
  /** The journal of what was read; a second call resumes from there. */
  journal: string
  /** With the run's share of the rate. */
  billing: Billing
  testMode: boolean
  /** Windows in flight. */
  concurrency: number
  readLagMs: number
  /** The most requests for the list, over all calls with this journal; failed ones count. */
  maxPages: number
  signal: AbortSignal
  onProgress?: (progress: { candidates: number; requests: number }) => void
}

export interface CandidateRead {
  candidates: Candidate[]
  /** Whether the list was seen whole: everything that needed attention throughout is among the candidates. */
  proven: boolean
  /** Why not, in sentences; empty where it was. */
  reasons: string[]
  /** `maxPages` was used up before the end of the list. */
  capped: boolean
  requests: number
  /** How many the service said there are; a hint. */
  count: number | undefined
}

/** The allowed requests are used up: what has come so far is the snapshot. */
class PagesUsedUp extends Error {
  override readonly name = 'PagesUsedUp'
}

/**
 * Reads the subscriptions that need attention: nothing is written, and every one that needed attention throughout
 * the read is among them, or the reasons say why that can't be told. Resuming takes a subscription off this very
 * list, so all of it comes before the first resume.
 */
export async function readCandidates(options: ReadOptions): Promise<CandidateRead> {
  const { billing, testMode, concurrency, readLagMs, maxPages, signal, onProgress } = options
  const journal = await openJournal(options.journal)
  try {
    if (journal.end !== undefined) return { ...journal.end, candidates: journal.candidates }
    const beforeSend = async () => {
      if (journal.requests >= maxPages) throw new PagesUsedUp()
      await journal.count()
    }
    const fetchPage: Parameters<typeof readList>[0]['fetchPage'] = async ({ signal: closed, ...page }) => {
      const both = AbortSignal.any([signal, closed])
      const window = await billing.list({ resource: subscriptions, ...page, signal: both, beforeSend })
      journal.answer()
      return window
    }
    await using read = readList({
      resource: subscriptions,
      filters: { status: 'needs_attention' },
      testMode,
      fetchPage,
      concurrency,
      readLagMs,
      now: Date.now,
      idSet: async () => journal.idSet(),
      ...(journal.state && { state: journal.state }),
    })
    for (;;) {
      const step = await read.next().catch((error: unknown) => {
        if (error instanceof PagesUsedUp) return undefined
        throw error
      })
      if (step === undefined || step.done === true) {
        const outcome = step?.value
        const { countBefore: count } = outcome ?? journal.state ?? {}
        return await journal.close({
          proven: outcome?.verdict === 'proven',
          reasons: outcome?.reasons ?? [whyCapped({ maxPages, failed: journal.failed })],
          capped: outcome === undefined,
          requests: journal.requests,
          count,
        })
      }
      const { records, state } = step.value
      await journal.append({ candidates: records.flatMap((record) => toCandidate(record) ?? []), state })
      onProgress?.({ candidates: journal.candidates.length, requests: journal.requests })
    }
  } finally {
    await journal.release()
  }
}

function whyCapped({ maxPages, failed }: { maxPages: number; failed: number }): string {
  if (failed === 0) return `the list takes more than ${maxPages} requests (maxPages)`
  const share = failed === maxPages ? 'all of these requests' : `${failed} of these requests`
  return `maxPages (${maxPages}) was used up before the end of the list: ${share} failed`
}
