import { retention } from '../../billing/resources/tax-documents.ts'
import { type Instant, toInstant } from '../../billing/instants.ts'
import type { SourceRecord } from '../../reading/record.ts'
import type { LedgerRow } from '../../state/ledger/row.ts'
import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'
import { parseBody } from '../body.ts'
import { differencesOf, textOf } from '../compare-fields.ts'
import { isDone, isDoneEarlier, type Outcome } from '../outcomes.ts'
import {
  createRetention,
  findRetentions,
  hasContents,
  idsBefore,
  idsKnownTo,
  retentionKey,
} from '../kinds/create-retention.ts'

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

export type Finding = { row: number; message: string } & (
  | { kind: 'missing'; id: string }
  /** The service has the row more than once. */
  | { kind: 'double'; ids: string[] }
  /** Another client created a retention with the same supplier, document and number. */
  | { kind: 'conflict'; ids: string[] }
  /** The service has the row although the ledger does not say that it is done. */
  | { kind: 'there'; id: string }
  | { kind: 'difference'; id: string; field: string; sent: string; stored: string }
)

export interface RetentionAudit {
  /** Why the audit does not prove the run; empty if each row is there once, as it was sent. */
  reasons: string[]
  /** Rows that are done. */
  rows: number
  /** Of these, found with the id that the ledger knows. */
  found: number
  findings: Record<Finding['kind'], number>
  /** How often each field is stored differently than sent. */
  changedFields: Record<string, number>
  /** Whether the list was read without a gap, from its newest record down to before the first send. */
  listProven: boolean
  requests: number
}

/** Rows that the list did not show are looked up one by one, up to this many. */
const maxLookups = 1_000

/** Compares the rows of a run with the records that the service has. */
export class RetentionTally {
  readonly #options: AuditOptions
  /** Records created before this were there before the run. */
  readonly #begin: Instant
  /** Rows whose own record has been seen, with its id. */
  readonly #seen = new Map<number, string>()
  /** Findings already reported: a record may come from the list and from a lookup. */
  readonly #reported = new Set<string>()
  readonly #findings: RetentionAudit['findings'] = {
    missing: 0,
    double: 0,
    conflict: 0,
    there: 0,
    difference: 0,
  }
  readonly #changedFields: Record<string, number> = {}
  #rows = 0
  #requests = 0
  #oldest: Instant = Infinity

  constructor({ begin, ...options }: AuditOptions & { begin: Instant }) {
    this.#options = options
    this.#begin = begin
  }

  /** The oldest `created` of the records that the run created; Infinity before the first. */
  get oldest(): Instant {
    return this.#oldest
  }

  /** Compares records of the list with the rows of the run that have the same keys. */
  async take(records: readonly SourceRecord[]): Promise<void> {
    const { ledger, run, workspace, testMode } = this.#options
    const byKey = Map.groupBy(records, retentionKey)
    const mode = testMode ? 'test' : 'live'
    const space = { workspace, mode, kind: createRetention.name, keys: [...byKey.keys()] } as const
    const rows = (await ledger.underKeys({ run, ...space })).filter(mayExist)
    await this.#compareAll(rows, (row) => byKey.get(row.key) ?? [])
  }

  async #compareAll(
    rows: readonly LedgerRow[],
    recordsOf: (row: LedgerRow) => readonly SourceRecord[],
  ): Promise<void> {
    const [row] = rows
    if (row === undefined) return
    const { workspace, mode, kind } = row
    const keys = rows.map(({ key }) => key)
    const holders = await this.#options.ledger.holders({ workspace, mode, kind, keys })
    const known = new Set(idsKnownTo(holders))
    for (const row of rows) for (const record of recordsOf(row)) this.#compare({ row, record, known })
  }

  #compare({ row, record, known }: { row: LedgerRow; record: SourceRecord; known: ReadonlySet<string> }) {
    const id = textOf(record['id'])
    const body = parseBody(row)
    const ownId = row.answerId ?? this.#seen.get(row.row)
    const isOwn = ownId === undefined ? this.#isFirst({ row, record, known }) : id === ownId
    if (isDone(row) && isOwn) {
      this.#seen.set(row.row, id)
      // The run did not create a record that a person assigned to a row, or that an earlier run created; it may be years
      // old.
      if (row.resolvedBy === null && !isDoneEarlier(row))
        this.#oldest = Math.min(this.#oldest, toInstant(record['created']) ?? Infinity)
      for (const difference of differencesOf({ schema: retention, sent: body, stored: record })) {
        const message = `row ${row.row}: ${difference.field} was sent as ${difference.sent} and is stored as ${difference.stored}`
        this.#found({ kind: 'difference', row: row.row, id, message, ...difference })
      }
      return
    }
    // The record belongs to another row or existed before the run.
    if (known.has(id) || idsBefore(row.before).includes(id)) return
    const isOlder = (toInstant(record['created']) ?? Infinity) < Math.min(this.#begin, this.#oldest)
    // What was there is why the service refused it.
    if (isOlder && row.state === 'rejected') return
    const ids = ownId === undefined ? [id] : [ownId, id]
    if (isDone(row) && isOlder)
      this.#found({
        kind: 'double',
        row: row.row,
        ids,
        message: `row ${row.row} exists as ${ids.join(' and ')}, which was there before the import`,
      })
    else if (!hasContents({ record, body }))
      this.#found({
        kind: 'conflict',
        row: row.row,
        ids,
        message: `row ${row.row}: another client created ${id}`,
      })
    else if (isDone(row))
      this.#found({
        kind: 'double',
        row: row.row,
        ids,
        message: `row ${row.row} exists as ${ids.join(' and ')}`,
      })
    else
      this.#found({
        kind: 'there',
        row: row.row,
        id,
        message: `row ${row.row} is ${row.state} but exists as ${id}`,
      })
  }

  /** For an answer without an id: the first free record with the contents that were sent is the row's own. */
  #isFirst({
    row,
    record,
    known,
  }: {
    row: LedgerRow
    record: SourceRecord
    known: ReadonlySet<string>
  }): boolean {
    const id = textOf(record['id'])
    const isFree = !known.has(id) && !idsBefore(row.before).includes(id)
    return isFree && !this.#seen.has(row.row) && hasContents({ record, body: parseBody(row) })
  }

  /**
   * Looks up the rows that the list did not show: the read may lose records that move, and an earlier send may have
   * created a row before the bound. Ends at the first record of the run below the bound; the list is then read
   * further down.
   */
  async lookUpUnseen({ bound, toEnd }: { bound: Instant; toEnd: boolean }): Promise<void> {
    this.#rows = 0
    for await (const row of this.#doneRows()) {
      this.#rows += 1
      if (this.#seen.has(row.row)) continue
      // It is older than the bound: `lookUpOlder` looks for it.
      if (isDoneEarlier(row) && !toEnd) continue
      const missing = { kind: 'missing', row: row.row, id: row.answerId ?? '' } as const
      if (this.#requests >= maxLookups) {
        this.#found({ ...missing, message: `row ${row.row} was not in the list and was not looked up` })
        continue
      }
      await this.#lookUp(row)
      if (this.#oldest < bound) return
      if (!this.#seen.has(row.row))
        this.#found({ ...missing, message: `row ${row.row} is done as ${row.answerId} but was not found` })
    }
  }

  /**
   * Looks up each row that is done for records from before the run. Returns false if a lookup does not find the row's own
   * record: then it does not find all others, either.
   */
  async lookUpOlder(): Promise<boolean> {
    const { concurrency } = this.#options
    const rows = this.#doneRows()
    let isFound = true
    const lookUpNext = async () => {
      for await (const row of rows) {
        isFound = (await this.#lookUp(row)) && isFound
        if (!isFound) return
      }
    }
    await Promise.all(Array.from({ length: concurrency }, lookUpNext))
    return isFound
  }

  async *#doneRows(): AsyncGenerator<LedgerRow> {
    const { ledger, run } = this.#options
    yield* ledger.rows({ run, state: 'done' })
    yield* ledger.rows({ run, outcome: 'doneEarlier' satisfies Outcome })
  }

  /** Compares all records under the key of a row with it. Returns whether its own one is among them. */
  async #lookUp(row: LedgerRow): Promise<boolean> {
    const { billing, signal } = this.#options
    this.#requests += 1
    const { records, honoured } = await findRetentions({ billing, body: parseBody(row), signal })
    await this.#compareAll([row], () => records)
    return honoured && records.some(({ id }) => textOf(id) === this.#seen.get(row.row))
  }

  #found(finding: Finding) {
    const message = `${finding.kind} ${finding.message}`
    if (this.#reported.has(message)) return
    this.#reported.add(message)
    this.#findings[finding.kind] += 1
    if (finding.kind === 'difference')
      this.#changedFields[finding.field] = (this.#changedFields[finding.field] ?? 0) + 1
    this.#options.onFinding?.(finding)
  }

  toResult({ reasons, requests }: { reasons: readonly string[]; requests: number }): RetentionAudit {
    const { missing, double, conflict, there, difference } = this.#findings
    const reason = (number: number, message: string) => (number === 0 ? [] : [`${number} ${message}`])
    return {
      reasons: [
        ...reasons.map((reason) => `the list of retentions could not be read completely: ${reason}`),
        ...reason(missing, 'done according to the ledger but not found in the service'),
        ...reason(double, 'in the service more than once'),
        ...reason(conflict, 'with another client’s retention under the same supplier, document and number'),
        ...reason(there, 'in the service but not done according to the ledger'),
        ...reason(difference, 'fields stored differently than sent'),
      ],
      rows: this.#rows,
      found: this.#rows - missing,
      findings: { ...this.#findings },
      changedFields: { ...this.#changedFields },
      listProven: reasons.length === 0,
      requests: requests + this.#requests,
    }
  }
}

/** A row that was closed before it was sent cannot be in the service because of this run. */
const mayExist = ({ state, sends, outcome }: LedgerRow): boolean =>
  sends > 0 || isDoneEarlier({ outcome }) || (state !== 'rejected' && state !== 'dropped')
