import type { Billing } from '../../billing/client.ts'
import type { Ledger } from '../../state/ledger/ledger.ts'

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
