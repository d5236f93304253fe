import { textOf } from '../../changes/compare-fields.ts'
import type { Body } from '../../billing/client.ts'

/** A subscription that needs attention, as of the snapshot. */
export interface Candidate {
  id: string
  customer: string
  /** The id of its first line, which finds the subscription in one small request. */
  line?: string
  /** Empty if it has none. */
  reason: string
  /** Since when it needs attention, as the service wrote it. */
  since: string
  scheme: string
  nextBilling: string
}

/** Reads a candidate from a record; undefined if the record needs no attention. */
export function toCandidate(record: Readonly<Record<string, unknown>>): Candidate | undefined {
  if (record['status'] !== 'needs_attention') return undefined
  const lines = record['lines']
  const first: unknown = Array.isArray(lines) ? lines[0] : undefined
  const line = textOf((first as Body | null | undefined)?.['id'])
  return {
    id: textOf(record['id']),
    customer: textOf(record['customer']),
    ...(line !== '' && { line }),
    reason: textOf(record['needs_attention_reason']),
    since: textOf(record['needs_attention']),
    scheme: textOf(record['collection_scheme']),
    nextBilling: textOf(record['next_billing']),
  }
}

/** Converts a candidate for the ledger: what is needed to find it and to report on it. `toSnapshot` reads it. */
export function toBody({
  candidate,
  nextBilling,
}: {
  candidate: Candidate
  nextBilling: string | undefined
}): Body {
  const { id, customer, line, reason, since, scheme, nextBilling: billed } = candidate
  return {
    id,
    customer,
    ...(line !== undefined && { line }),
    collection_scheme: scheme,
    ...(nextBilling !== undefined && { next_billing: nextBilling }),
    snapshot: { reason, since, next_billing: billed },
  }
}

/** Restores a candidate from its ledger row. */
export function fromBody(body: Body): Candidate {
  const snapshot = (body['snapshot'] ?? {}) as Body
  const line = textOf(body['line'])
  return {
    id: textOf(body['id']),
    customer: textOf(body['customer']),
    ...(line !== '' && { line }),
    reason: textOf(snapshot['reason']),
    since: textOf(snapshot['since']),
    scheme: textOf(body['collection_scheme']),
    nextBilling: textOf(snapshot['next_billing']),
  }
}

export interface CandidateRead {
  candidates: Candidate[]
  /** Whether the list was read completely: every subscription that needed attention throughout the read is included. */
  proven: boolean
  /** Why the read is not proven, one sentence each; empty if it is. */
  reasons: string[]
  /** Whether `maxPages` was reached before the end of the list. */
  capped: boolean
  requests: number
  /** The service's own count; only a hint. */
  count: number | undefined
}
