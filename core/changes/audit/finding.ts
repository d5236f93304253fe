import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'

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
