import type { Billing } from '../billing/client.ts'
import { type Instant, toInstant } from '../billing/instants.ts'
import type { ListPage } from '../billing/reply.ts'
import { retention, retentions } from '../billing/resources/tax-documents.ts'
import { readInMemory } from '../reading/read-list.ts'
import { isRecord, type SourceRecord } from '../reading/record.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { parseBody } from './body.ts'
import { describeDifference, differencesOf, textOf } from './compare-fields.ts'
import {
  createRetention,
  findRetentions,
  hasContents,
  idsBefore,
  idsKnownTo,
  retentionKey,
} from './kinds/create-retention.ts'
import { isDone, isDoneEarlier, type Outcome } from './outcomes.ts'

export interface AuditOptions {
  ledger: Ledger
  run: string
  /** Limited to the run's share of the rate. */
  billing: Billing
  workspace: string
  testMode: boolean
  /** Result of `newestCreated` before the first send; undefined if the list was empty. */
  newestBefore: string | undefined
  /** How long after its `created` a record can become visible. */
  readLagMs: number
  /** Rows that are looked up at once. */
  concurrency: number
  signal?: AbortSignal
  /** Called for each finding. There may be many, so they are not kept here. */
  onFinding?: (finding: Finding) => void
}

export interface Finding {
  /** `double`: the service has the row more than once. `there`: it has a row that is not done. */
  kind: keyof typeof findingLabels
  row: number
  message: string
  /** Its records in the service; its own is the first. */
  ids: string[]
  /** Set if a field differs. */
  field?: string
  sent?: string
  stored?: string
}

/** What each kind of finding says against the run. */
const findingLabels = {
  missing: 'done according to the ledger but not found in the service',
  double: 'in the service more than once',
  conflict: 'with another client’s retention under the same supplier, document and number',
  there: 'in the service but not done according to the ledger',
  difference: 'fields stored differently than sent',
}

export interface RetentionAudit {
  /** Why the audit does not prove the run; empty if each row is there once, as it was sent. */
  reasons: string[]
  /** Rows that are done. */
  rows: number
  /** Of these, found with the id that the ledger knows. */
  found: number
  findings: Record<Finding['kind'], number>
  requests: number
}

const pageSize = 100
/** Rows that a list read to its end did not show are looked up one by one, up to this many. */
const maxLookups = 1_000

/**
 * Proves an import of retentions against the service's own list: from its newest record down to the one that was
 * newest before the first send, each row is there exactly once, and every field has the value that was sent. Of what is
 * older, no record has the key of a row: each row is looked up, or the list is read to its end where that is less.
 * @throws the errors of the reads
 */
export async function auditRetentions(options: AuditOptions): Promise<RetentionAudit> {
  const { ledger, run, newestBefore, readLagMs } = options
  // Minus the lag, for records that become visible late.
  const begin = (toInstant(newestBefore) ?? -Infinity) - readLagMs * 1_000
  const comparison = new Comparison({ ...options, begin })
  const counts = await ledger.counts({ run })
  const rows = counts.reduce((sum, count) => sum + (isDone(count) ? count.number : 0), 0)
  const { count = Infinity } = await newestPage(options)
  let requests = 1
  const readTo = async (bound: Instant) => {
    const read = await readDown(options, { bound, take: (records) => comparison.take(records) })
    requests += read.requests
    return read
  }
  // A page costs about as much as the lookup of a row.
  let read = await readTo(count <= rows * pageSize ? -Infinity : begin)
  // A lookup that does not find a row's own record does not find all others, either. And if the run's own records are
  // older than the bound, by a clock that is wrong, so may be those of rows that are not done and not looked up.
  if (!read.toEnd && !((await comparison.lookUpAll()) && comparison.oldest >= begin))
    read = await readTo(-Infinity)
  await comparison.lookUpUnseen()

  const { findings } = comparison
  return {
    reasons: [
      ...read.reasons.map((reason) => `the list of retentions could not be read completely: ${reason}`),
      ...Object.entries(findingLabels).flatMap(([kind, label]) => {
        const number = findings[kind as Finding['kind']]
        return number === 0 ? [] : [`${number} ${label}`]
      }),
    ],
    rows,
    found: rows - findings.missing,
    findings,
    requests: requests + comparison.lookups,
  }
}

/** Compares the rows of a run with the records that the service has. */
class Comparison {
  readonly #options: AuditOptions & { begin: Instant }
  /** The id of each row whose own record has been seen. */
  readonly #seen = new Map<number, string>()
  /** A record may come from the list and from a lookup. */
  readonly #reported = new Set<string>()
  readonly findings: RetentionAudit['findings'] = {
    missing: 0,
    double: 0,
    conflict: 0,
    there: 0,
    difference: 0,
  }
  lookups = 0
  /** The oldest `created` of the records that the run created; Infinity before the first. */
  oldest: Instant = Infinity

  /** `begin`: records created before this were there before the run. */
  constructor(options: AuditOptions & { begin: Instant }) {
    this.#options = options
  }

  /** Compares records of the list with the rows of the run that have the same keys. */
  async take(records: readonly SourceRecord[]): Promise<void> {
    const { ledger, run, workspace, testMode } = this.#options
    const byKey = Map.groupBy(records, retentionKey)
    const mode = testMode ? 'test' : 'live'
    const space = { workspace, mode, kind: createRetention.name, keys: [...byKey.keys()] } as const
    const rows = await ledger.underKeys({ run, ...space })
    await this.#compareAll(rows.filter(mayExist), (row) => byKey.get(row.key) ?? [])
  }

  /**
   * Looks up all records under the key of each row that is done. Returns false if a lookup does not find the row's own
   * record.
   */
  async lookUpAll(): Promise<boolean> {
    const rows = this.#doneRows()
    let isFound = true
    const lookUpNext = async () => {
      for await (const row of rows) {
        if (!(await this.#lookUp(row))) isFound = false
        if (!isFound) return
      }
    }
    await Promise.all(Array.from({ length: this.#options.concurrency }, lookUpNext))
    return isFound
  }

  /** Looks up the rows that the list did not show: the read may lose records that move. */
  async lookUpUnseen(): Promise<void> {
    let lookups = 0
    for await (const row of this.#doneRows()) {
      if (this.#seen.has(row.row)) continue
      lookups += 1
      if (lookups <= maxLookups) await this.#lookUp(row)
      if (this.#seen.has(row.row)) continue
      const why =
        lookups > maxLookups
          ? 'was not in the list and was not looked up'
          : `is done as ${row.answerId} but was not found`
      const ids = row.answerId === null ? [] : [row.answerId]
      this.#report({ kind: 'missing', row: row.row, ids, message: `row ${row.row} ${why}` })
    }
  }

  async *#doneRows(): AsyncGenerator<LedgerRow> {
    const { ledger, run } = this.#options
    yield* ledger.rows({ run, state: 'done' })
    yield* ledger.rows({ run, outcome: 'doneEarlier' satisfies Outcome })
  }

  /** Compares all records under the key of a row with it. Returns whether its own one is among them. */
  async #lookUp(row: LedgerRow): Promise<boolean> {
    const { billing, signal } = this.#options
    this.lookups += 1
    const { records, honoured } = await findRetentions({ billing, body: parseBody(row), signal })
    await this.#compareAll([row], () => records)
    return honoured && records.some(({ id }) => textOf(id) === this.#seen.get(row.row))
  }

  async #compareAll(
    rows: readonly LedgerRow[],
    recordsOf: (row: LedgerRow) => readonly SourceRecord[],
  ): Promise<void> {
    const [first] = rows
    if (first === undefined) return
    const { workspace, mode, kind } = first
    const keys = rows.map(({ key }) => key)
    const holders = await this.#options.ledger.holders({ workspace, mode, kind, keys })
    const known = new Set(idsKnownTo(holders))
    for (const row of rows) {
      const before = idsBefore(row.before)
      // Another row's, or there when the row was staged.
      const isForeign = (id: string) => known.has(id) || before.includes(id)
      for (const record of recordsOf(row)) this.#compare(row, record, isForeign)
    }
  }

  #compare(row: LedgerRow, record: SourceRecord, isForeign: (id: string) => boolean): void {
    const id = textOf(record['id'])
    const name = `row ${row.row}`
    const body = parseBody(row)
    const created = toInstant(record['created']) ?? Infinity
    const ownId = row.answerId ?? this.#seen.get(row.row)
    // After an answer without an id, the first free record with the contents that were sent is the row's own.
    const isOwn = ownId === undefined ? !isForeign(id) && hasContents({ record, body }) : id === ownId
    if (isDone(row) && isOwn) {
      this.#seen.set(row.row, id)
      // The record that a person assigned to a row, or that an earlier run created, may be years old.
      if (row.resolvedBy === null && !isDoneEarlier(row)) this.oldest = Math.min(this.oldest, created)
      for (const difference of differencesOf({ schema: retention, sent: body, stored: record })) {
        const message = `${name}: ${describeDifference(difference)}`
        this.#report({ kind: 'difference', row: row.row, ids: [id], message, ...difference })
      }
      return
    }
    if (isForeign(id)) return
    const isOlder = created < Math.min(this.#options.begin, this.oldest)
    // What was there is why the service refused it.
    if (isOlder && row.state === 'rejected') return
    const ids = ownId === undefined ? [id] : [ownId, id]
    const exists = `exists as ${ids.join(' and ')}`
    const report = (kind: Finding['kind'], message: string) =>
      this.#report({ kind, row: row.row, ids, message: `${name}${message}` })
    if (isDone(row) && isOlder) report('double', ` ${exists}, which was there before the import`)
    else if (!hasContents({ record, body })) report('conflict', `: another client created ${id}`)
    else if (isDone(row)) report('double', ` ${exists}`)
    else report('there', ` is ${row.state} but ${exists}`)
  }

  #report(finding: Finding): void {
    const { kind, message } = finding
    if (this.#reported.has(`${kind} ${message}`)) return
    this.#reported.add(`${kind} ${message}`)
    this.findings[kind] += 1
    this.#options.onFinding?.(finding)
  }
}

/** A row that was closed before it was sent cannot be in the service because of this run. */
const mayExist = ({ state, sends, outcome }: LedgerRow): boolean =>
  sends > 0 || isDoneEarlier({ outcome }) || (state !== 'rejected' && state !== 'dropped')

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
  const newest = Math.max(...records.filter(isRecord).map(({ created }) => toInstant(created) ?? -Infinity))
  return newest === -Infinity ? undefined : new Date(Math.min(newest / 1_000, servedAt)).toISOString()
}

/** Passes on the records of the list that are not older than the bound, newest first. */
export async function readDown(
  {
    billing,
    testMode,
    readLagMs,
    signal,
  }: Pick<AuditOptions, 'billing' | 'testMode' | 'readLagMs' | 'signal'>,
  { bound, take }: { bound: Instant; take: (records: readonly SourceRecord[]) => Promise<void> },
): Promise<{ reasons: string[]; requests: number; toEnd: boolean }> {
  const read = readInMemory({
    resource: retentions,
    testMode,
    fetchPage: (request) => billing.list({ resource: retentions, ...request, ...(signal && { signal }) }),
    downTo: bound - 1,
    readLagMs,
  })
  for (;;) {
    const step = await read.next()
    if (step.done === true) return { ...step.value, toEnd: !step.value.sawBound }
    await take(step.value.records)
  }
}
