import type { CandidateRead } from './candidate.ts'
import type { Billing } from '../../billing/client.ts'
import { subscriptions } from '../../billing/resources/subscriptions.ts'
import { readList } from '../../reading/read-list.ts'
import { toCandidate } from './candidate.ts'
import { openJournal } from './journal.ts'

interface ReadOptions {
  /** Path of the journal; a second call resumes from it. */
  journal: string
  /** Limited to the run's share of the rate. */
  billing: Billing
  testMode: boolean
  /** The most windows in flight. */
  concurrency: number
  readLagMs: number
  /** The most list requests, including failed ones, across all calls with this journal. */
  maxPages: number
  signal: AbortSignal
  onProgress?: (progress: { candidates: number; requests: number }) => void
}

/** `maxPages` is used up: what was read so far is the snapshot. */
class PagesUsedUp extends Error {
  override readonly name = 'PagesUsedUp'
}

/**
 * Reads the subscriptions that need attention and writes nothing to the service. The result includes every
 * subscription that needed attention throughout the read, or the reasons say why that is not proven. Resuming
 * removes a subscription from this list, so the whole read comes before the first resume.
 */
export async function readCandidates(options: ReadOptions): Promise<CandidateRead> {
  const { billing, testMode, concurrency, readLagMs, maxPages, signal, onProgress } = options
  const journal = await openJournal(options.journal)
  try {
    if (journal.end !== undefined) return { ...journal.end, candidates: journal.candidates }
    const fetchPage: Parameters<typeof readList>[0]['fetchPage'] = async ({ signal: closed, ...page }) => {
      const both = AbortSignal.any([signal, closed])
      let tried = false
      const beforeSend = async () => {
        if (tried) journal.fail()
        tried = false
        if (journal.requests >= maxPages) throw new PagesUsedUp()
        tried = true
        await journal.count()
      }
      try {
        const window = await billing.list({ resource: subscriptions, ...page, signal: both, beforeSend })
        journal.answer()
        return window
      } catch (error) {
        if (tried && !both.aborted) journal.fail()
        throw error
      }
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
