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
  const { billing, testMode, readLagMs, maxPages, signal, onProgress } = options
  const journal = await openJournal(options.journal)
  try {
    if (journal.end !== undefined) return { ...journal.end, candidates: journal.candidates }
    const beforeSend = async () => {
      if (journal.requests >= maxPages) throw new PagesUsedUp()
      await journal.count()
    }
    const fetchPage: Parameters<typeof readList>[0]['fetchPage'] = async (page) => {
      const window = await billing.list({
        resource: subscriptions,
        ...page,
        signal,
        beforeSend,
        onFailure: () => journal.fail(),
      })
      journal.answer()
      return window
    }
    const read = readList({
      resource: subscriptions,
      filters: { status: 'needs_attention' },
      testMode,
      fetchPage,
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
        const { failed, lost } = journal
        return await journal.close({
          proven: outcome?.verdict === 'proven',
          reasons: outcome?.reasons ?? [
            whyCapped({ maxPages, failed, lost }),
            ...(journal.state?.reasons ?? []),
          ],
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
