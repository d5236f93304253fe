import type { AuditOptions, RetentionAudit } from './retention-tally.ts'
import type { Billing } from '../../billing/client.ts'
import type { ListPage } from '../../billing/reply.ts'
import { retentions } from '../../billing/resources/tax-documents.ts'
import { type Instant, toInstant } from '../../billing/instants.ts'
import { readList } from '../../reading/read-list.ts'
import { type SourceRecord, isRecord } from '../../reading/record.ts'
import { textOf } from '../compare-fields.ts'
import { isDone } from '../outcomes.ts'
import { RetentionTally } from './retention-tally.ts'

/**
 * Proves an import of retentions against the service's own list: from its newest record down to the one that was
 * newest before the first send, each row is there exactly once, and every field has the value that was sent. Of what is
 * older, no record has the key of a row: each row is looked up, or the list is read to its end where that is less.
 * @throws the errors of the reads
 */
export async function auditRetentions(options: AuditOptions): Promise<RetentionAudit> {
  const { ledger, run, readLagMs } = options
  let bound = lowerBound(options)
  const tally = new RetentionTally({ ...options, begin: bound })
  const counts = await ledger.counts({ run })
  const rows = counts.reduce((sum, count) => sum + (isDone(count) ? count.number : 0), 0)
  const { count = Infinity } = await newestPage(options)
  // A page costs about as much as the lookup of a row.
  if (count <= rows * pageSize) bound = -Infinity
  let requests = 1
  for (let time = 1; ; time++) {
    const read = await readDown(options, { bound, take: (records) => tally.take(records) })
    requests += read.requests
    await tally.lookUpUnseen({ bound, toEnd: read.toEnd })
    const { reasons } = read
    if (read.toEnd || reasons.length > 0) return tally.toResult({ reasons, requests })
    // Some of the run's own records are older than the bound, so duplicates of rows seen above may be, too.
    // Each read may show still older ones of them: the third reads everything.
    if (tally.oldest < bound) bound = time < 2 ? tally.oldest - readLagMs * 1_000 : -Infinity
    else if (await tally.lookUpOlder()) return tally.toResult({ reasons: [], requests })
    else bound = -Infinity
  }
}

const pageSize = 100

/** The first page of the list, newest first. */
export const newestPage = ({
  billing,
  signal,
}: {
  billing: Billing
  signal?: AbortSignal | undefined
}): Promise<ListPage> =>
  billing.list({ resource: retentions, page: 1, pageSize, ordering: '-created', ...(signal && { signal }) })

/**
 * The lower end of the audit, from the first page before the first send: the newest `created` in the list, but never
 * later than the service's clock. Otherwise one record from a clock that is ahead would end the audit above the run.
 * Undefined if the list is empty.
 */
export function newestCreated({ records, servedAt = Date.now() }: ListPage): string | undefined {
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
  /** Whether the list was read to its end. */
  toEnd: boolean
}

/** How the list is read. */
export type ListRead = Pick<AuditOptions, 'billing' | 'testMode' | 'readLagMs' | 'signal'>

/** The newest `created` before the first send, minus the lag for records that become visible late. */
export const lowerBound = ({
  newestBefore,
  readLagMs,
}: Pick<AuditOptions, 'newestBefore' | 'readLagMs'>): Instant =>
  (toInstant(newestBefore) ?? -Infinity) - readLagMs * 1_000

/** Passes on the records that are not older than the bound. */
export async function readDown(
  { billing, testMode, readLagMs, signal }: ListRead,
  { bound, take }: { bound: Instant; take: (records: readonly SourceRecord[]) => Promise<void> },
): Promise<Read> {
  const ids = new Set<string>()
  const read = readList({
    resource: retentions,
    testMode,
    fetchPage: (request) => billing.list({ resource: retentions, ...request, ...(signal && { signal }) }),
    downTo: bound - 1,
    readLagMs,
    now: Date.now,
    idSet: async () => ({
      add: (added) => added.map(({ id }) => ids.size !== ids.add(id).size),
    }),
  })
  for (;;) {
    const step = await read.next()
    if (step.done === true) return { ...step.value, toEnd: !step.value.sawBound }
    const { records } = step.value
    await take(records)
    for (const record of records) ids.add(textOf(record['id']))
  }
}
