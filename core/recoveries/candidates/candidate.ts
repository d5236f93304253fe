import { textOf } from '../../changes/compare-fields.ts'
import type { Body } from '../../billing/client.ts'

/** A subscription that needs attention, as the snapshot saw it. */
export interface Candidate {
  id: string
  customer: string
  /** The id of its first line, which finds it again in one small request. */
  line?: string
  /** '' where it has none. */
  reason: string
  /** When it came into needs_attention, as the service wrote it. */
  since: string
  scheme: string
  nextBilling: string
}

/** Undefined for a record that needs no attention. */
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

/** What the ledger keeps of a candidate: what finds it, and what the report says of it. `toSnapshot` reads it. */
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

/** A candidate again, from what the ledger keeps of it. */
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
  /** Whether the list was read completely: everything that needed attention throughout is among the candidates. */
  proven: boolean
  /** Why not, in sentences; empty where it was. */
  reasons: string[]
  /** `maxPages` was used up before the end of the list. */
  capped: boolean
  requests: number
  /** How many the service said there are; a hint. */
  count: number | undefined
}
