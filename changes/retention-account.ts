import { retention } from '../billing/resources/retentions.ts'
import { type Instant, toInstant } from '../reading/instant.ts'
import type { SourceRecord } from '../reading/record.ts'
import type { LedgerRow } from '../state/ledger-row.ts'
import type { AuditOptions, Finding, RetentionAudit } from './audit-retentions.ts'
import { parseBody } from './body.ts'
import { differencesOf, textOf } from './contents.ts'
import {
  createRetention,
  findRetentions,
  hasContents,
  idsBefore,
  retentionKey,
} from './kinds/create-retention.ts'

/** Rows that the list did not show are looked up one by one; more than these are not worth as many requests. */
const mostLookUps = 1_000

/** Each row of a run that should be there once, and what the service has of it. */
export class RetentionAccount {
  readonly #options: AuditOptions
  /** Rows whose own record has been seen. */
  readonly #seen = new Set<number>()
  /** What has been told, since a record may come by the list and by a look-up. */
  readonly #told = new Set<string>()
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

  constructor(options: AuditOptions) {
    this.#options = options
  }

  /** The oldest `created` of the records that the run made; Infinity before one was met. */
  get oldest(): Instant {
    return this.#oldest
  }

  /** Holds records of the list against the rows of the run that have their keys. */
  async take(records: readonly SourceRecord[]): Promise<void> {
    const { ledger, run, workspace, testMode } = this.#options
    const byKey = Map.groupBy(records, retentionKey)
    const mode = testMode ? 'test' : 'live'
    const space = { workspace, mode, kind: createRetention.name, keys: [...byKey.keys()] } as const
    const holders = await ledger.holders(space)
    const known = new Set(holders.flatMap(({ answerId }) => answerId ?? []))
    for (const row of (await ledger.underKeys({ run, ...space })).filter(couldBeThere))
      for (const record of byKey.get(row.key) ?? []) this.#hold({ row, record, known })
  }

  #hold({ row, record, known }: { row: LedgerRow; record: SourceRecord; known: ReadonlySet<string> }) {
    const id = textOf(record['id'])
    const body = parseBody(row)
    const isOwn = id === row.answerId || (row.answerId === null && this.#isFirst({ row, record, known }))
    if (row.state === 'done' && isOwn) {
      this.#seen.add(row.row)
      // A record that a person named for a row may be years old, and the run did not make it.
      if (row.resolvedBy === null)
        this.#oldest = Math.min(this.#oldest, toInstant(record['created']) ?? Infinity)
      for (const difference of differencesOf({ schema: retention, sent: body, stored: record })) {
        const words = `row ${row.row}: ${difference.field} was sent as ${difference.sent} and is stored as ${difference.stored}`
        this.#found({ what: 'difference', row: row.row, id, words, ...difference })
      }
      return
    }
    // Another row's record, or one that was there before.
    if (known.has(id) || idsBefore(row.before).includes(id)) return
    const ids = row.answerId === null ? [id] : [row.answerId, id]
    if (!hasContents({ record, body }))
      this.#found({ what: 'conflict', row: row.row, ids, words: `row ${row.row}: somebody else made ${id}` })
    else if (row.state === 'done')
      this.#found({
        what: 'double',
        row: row.row,
        ids,
        words: `row ${row.row} is there as ${ids.join(' and ')}`,
      })
    else
      this.#found({
        what: 'there',
        row: row.row,
        id,
        words: `row ${row.row} is ${row.state}, and is there as ${id}`,
      })
  }

  /** The service's answer had no id: what was sent is there under some id, and that is the row's own. */
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
   * A read may lose what moved under it; and a row may have been done before the bound, by an earlier send. Ends
   * at the first record of the run below the bound: the list is worth reading further down then.
   */
  async lookUpUnseen({ bound }: { bound: Instant }): Promise<void> {
    const { ledger, run, billing, signal } = this.#options
    this.#rows = 0
    for await (const row of ledger.rows({ run, state: 'done' })) {
      this.#rows += 1
      if (this.#seen.has(row.row)) continue
      const missing = { what: 'missing', row: row.row, id: row.answerId ?? '' } as const
      if (this.#requests >= mostLookUps) {
        this.#found({ ...missing, words: `row ${row.row} was not in the list, and was not looked up` })
        continue
      }
      this.#requests += 1
      const { records } = await findRetentions({ billing, body: parseBody(row), signal })
      await this.take(records)
      if (this.#oldest < bound) return
      if (!this.#seen.has(row.row))
        this.#found({ ...missing, words: `row ${row.row} is done as ${row.answerId}, and was not found` })
    }
  }

  #found(finding: Finding) {
    const words = `${finding.what} ${finding.words}`
    if (this.#told.has(words)) return
    this.#told.add(words)
    this.#findings[finding.what] += 1
    if (finding.what === 'difference')
      this.#changedFields[finding.field] = (this.#changedFields[finding.field] ?? 0) + 1
    this.#options.onFinding?.(finding)
  }

  toResult({ reasons, requests }: { reasons: readonly string[]; requests: number }): RetentionAudit {
    const { missing, double, conflict, there, difference } = this.#findings
    const say = (number: number, words: string) => (number === 0 ? [] : [`${number} ${words}`])
    return {
      reasons: [
        ...reasons.map((reason) => `the list of retentions could not be read whole: ${reason}`),
        ...say(missing, 'done by the ledger, and not found in the service'),
        ...say(double, 'in the service more than once'),
        ...say(conflict, 'with a retention of somebody else under the same supplier, document and number'),
        ...say(there, 'in the service although the ledger does not call them done'),
        ...say(difference, 'fields stored otherwise than sent'),
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

/** What was closed before anything of it was sent is nobody's concern here. */
const couldBeThere = ({ state, sends }: LedgerRow): boolean =>
  sends > 0 || (state !== 'rejected' && state !== 'dropped')
