import type { AuditOptions, RetentionAudit } from './finding.ts'
import type { Billing } from '../../billing/client.ts'
import { retentions } from '../../billing/resources/retentions.ts'
import { type Instant, toInstant } from '../../reading/instant.ts'
import { readList } from '../../reading/read-list.ts'
import { type SourceRecord, isRecord } from '../../reading/record.ts'
import { textOf } from '../compare-fields.ts'
import { RetentionTally } from './retention-tally.ts'

/**
 * Proves an import of retentions against the service's own list: from its newest record down to the one that was
 * newest before the first send, each row is there exactly once, and every field has the value that was sent.
 * @throws the errors of the reads
 */
export async function auditRetentions(options: AuditOptions): Promise<RetentionAudit> {
  const tally = new RetentionTally(options)
  const lagMicros = options.readLagMs * 1_000
  let requests = 0
  let bound = lowerBound(options)
  for (;;) {
    const read = await readDown(options, { bound, take: (records) => tally.take(records) })
    requests += read.requests
    await tally.lookUpUnseen({ bound })
    // Some of the run's own records are older than the bound, so duplicates of rows seen above may be, too.
    if (tally.oldest >= bound || read.reasons.length > 0)
      return tally.toResult({ reasons: read.reasons, requests })
    bound = tally.oldest - lagMicros
  }
}

/**
 * The lower end of the audit, taken before the first send: the newest `created` in the list, but never later than the
 * service's clock. Otherwise one record from a clock that is ahead would end the audit above the run.
 * Undefined if the list is empty.
 */
export async function newestCreated({
  billing,
  signal,
}: {
  billing: Billing
  signal?: AbortSignal
}): Promise<string | undefined> {
  const query = { resource: retentions, page: 1, pageSize: 100, ordering: '-created' }
  const { records, servedAt = Date.now() } = await billing.list({ ...query, ...(signal && { signal }) })
  let newest: { text: string; instant: Instant } | undefined
  for (const record of records.filter(isRecord)) {
    const { created } = record
    const instant = toInstant(created)
    if (typeof created === 'string' && instant !== undefined && instant > (newest?.instant ?? -Infinity))
      newest = { text: created, instant }
  }
  if (newest === undefined || newest.instant <= servedAt * 1_000) return newest?.text
  return new Date(servedAt).toISOString()
}

interface Read {
  reasons: string[]
  requests: number
}

/** How the list is read. */
export type ListRead = Pick<AuditOptions, 'billing' | 'testMode' | 'readLagMs' | 'concurrency' | 'signal'>

/** The newest `created` before the first send, minus the lag for records that become visible late. */
export const lowerBound = ({
  newestBefore,
  readLagMs,
}: Pick<AuditOptions, 'newestBefore' | 'readLagMs'>): Instant =>
  (toInstant(newestBefore) ?? -Infinity) - readLagMs * 1_000

/** Passes on the records, newest first, until one is older than the bound: all newer ones have come by then. */
export async function readDown(
  { billing, testMode, readLagMs, concurrency, signal }: ListRead,
  { bound, take }: { bound: Instant; take: (records: readonly SourceRecord[]) => Promise<void> },
): Promise<Read> {
  const ids = new Set<string>()
  // Leaving early cancels the windows in flight.
  await using read = readList({
    resource: retentions,
    testMode,
    fetchPage: ({ signal: closed, ...request }) =>
      billing.list({
        resource: retentions,
        ...request,
        signal: signal === undefined ? closed : AbortSignal.any([signal, closed]),
      }),
    concurrency,
    readLagMs,
    now: Date.now,
    idSet: async () => ({
      add: (added) => added.map((id) => ids.size !== ids.add(id).size),
    }),
  })
  for (;;) {
    const step = await read.next()
    if (step.done === true) return step.value
    const { records, state } = step.value
    await take(records)
    for (const record of records) ids.add(textOf(record['id']))
    const chained = state.pass.phase === 'chain' && state.reasons.length === 0
    if (chained && records.some(({ created }) => (toInstant(created) ?? Infinity) < bound))
      return { reasons: [], requests: state.requests.made }
  }
}
