import type { Billing } from '../billing/client.ts'
import { retentions } from '../billing/resources/retentions.ts'
import { type Instant, toInstant } from '../reading/instant.ts'
import { readList } from '../reading/read-list.ts'
import { type SourceRecord, isRecord } from '../reading/record.ts'
import type { Ledger } from '../state/ledger.ts'
import { textOf } from './contents.ts'
import { RetentionAccount } from './retention-account.ts'

export interface AuditOptions {
  ledger: Ledger
  run: string
  /** With the run's share of the rate. */
  billing: Billing
  workspace: string
  testMode: boolean
  /** What `newestCreated` gave before the first send; undefined where the list was empty then. */
  newestBefore: string | undefined
  /** How long after its `created` a record can become visible. */
  readLagMs: number
  /** Windows in flight. */
  concurrency: number
  signal?: AbortSignal
  /** Told of everything that is not as it should be; there may be many, so they are not kept here. */
  onFinding?: (finding: Finding) => void
}

export type Finding = { row: number; words: string } & (
  | { what: 'missing'; id: string }
  /** The service has the row more than once. */
  | { what: 'double'; ids: string[] }
  /** Somebody else made a retention with the same supplier, document and number. */
  | { what: 'conflict'; ids: string[] }
  /** The ledger does not call it done, and the service has it. */
  | { what: 'there'; id: string }
  | { what: 'difference'; id: string; field: string; sent: string; stored: string }
)

export interface RetentionAudit {
  /** Why the audit does not prove the run; empty where each row is there once, as it was sent. */
  reasons: string[]
  /** Rows that are done. */
  rows: number
  /** Of these, found with the id that the ledger knows. */
  found: number
  findings: Record<Finding['what'], number>
  /** How often each field is stored otherwise than sent. */
  changedFields: Record<string, number>
  /** Whether the list was read without a gap from its newest record down to before the first send. */
  listProven: boolean
  requests: number
}

/**
 * Proves an import of retentions against the service's own list: from its newest record down to what was newest
 * before the first send, each row is there exactly once, and every field is stored with the value that was sent.
 * Throws the errors of the reads.
 */
export async function auditRetentions(options: AuditOptions): Promise<RetentionAudit> {
  const account = new RetentionAccount(options)
  const lagMicros = options.readLagMs * 1_000
  let requests = 0
  let bound = lowerBound(options)
  for (;;) {
    const read = await readDown(options, { bound, take: (records) => account.take(records) })
    requests += read.requests
    await account.lookUpUnseen({ bound })
    // What the run itself made lies below: so may a double of a row that was met above.
    if (account.oldest >= bound || read.reasons.length > 0)
      return account.toResult({ reasons: read.reasons, requests })
    bound = account.oldest - lagMicros
  }
}

/**
 * The lower end of the audit, to be taken before the first send: the newest `created` that the list shows, and never
 * later than the service's own clock, because one record of a clock that is ahead would end the audit above the run.
 * Undefined where the list is empty.
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

/** What the list showed before the first send, less the lag for records that become visible late. */
export const lowerBound = ({
  newestBefore,
  readLagMs,
}: Pick<AuditOptions, 'newestBefore' | 'readLagMs'>): Instant =>
  (toInstant(newestBefore) ?? -Infinity) - readLagMs * 1_000

/** Hands over the records newest first, until one is older than the bound: then all that are newer have come. */
export async function readDown(
  { billing, testMode, readLagMs, concurrency, signal }: ListRead,
  { bound, take }: { bound: Instant; take: (records: readonly SourceRecord[]) => Promise<void> },
): Promise<Read> {
  const ids = new Set<string>()
  // Left early, it ends its windows in flight.
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
