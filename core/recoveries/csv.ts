import { stringify } from 'csv-stringify'
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { parseBody } from '../changes/body.ts'
import { explain } from '../changes/view.ts'
import { textOf } from '../changes/compare-fields.ts'
import type { SubscriptionFacts } from '../changes/kinds/resume-subscription.ts'
import { placeOf } from '../changes/report.ts'
import { outcomeLabel } from '../runs/view/counts.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { guardFormula } from '../tables/formula-guard.ts'
import { type Candidate, fromBody } from './candidates.ts'
import type { Selection } from './select.ts'

/** The outcome of one subscription; in a dry run, the outcome it would have. */
export interface RecoveryRow {
  row: number
  candidate: Candidate
  /** The number of times this run resumed it. */
  attempts: number
  outcome: string
  message: string | null
  /** The facts from the last lookup; undefined if there was none. */
  saw: Partial<SubscriptionFacts> | undefined
  resumedAt: number | null
}

export function toRecoveryRow(row: LedgerRow): RecoveryRow {
  return {
    row: row.row,
    candidate: fromBody(parseBody(row)),
    attempts: row.sends,
    outcome: outcomeOf(row),
    message: explain(row),
    saw: factsIn(row),
    resumedAt: row.sends === 0 ? null : row.sentAt,
  }
}

/** The rows of a dry run, with the outcomes that they would have. */
export const toDryRows = ({ rows }: Pick<Selection, 'rows'>): RecoveryRow[] =>
  rows.map(({ candidate, change: { row, closed } }) => ({
    row,
    candidate,
    attempts: 0,
    outcome: closed?.outcome ?? 'wouldResume',
    message: closed?.error ?? null,
    saw: undefined,
    resumedAt: null,
  }))

/** The outcome of a change if it has one, otherwise its state. */
export function outcomeOf({ state, outcome }: Pick<LedgerRow, 'state' | 'outcome'>): string {
  const place = placeOf({ state, outcome })
  if (place === 'unknown') return 'unknown'
  return outcome ?? (place === 'staged' ? 'notTried' : place)
}

/** The facts of the last lookup or of the response; undefined if the stored JSON is incomplete. */
function factsIn({ answer }: LedgerRow): Partial<SubscriptionFacts> | undefined {
  try {
    return (JSON.parse(answer ?? 'null') as Partial<SubscriptionFacts> | null) ?? undefined
  } catch {
    return undefined
  }
}

const columns: Readonly<Record<string, (row: RecoveryRow) => string>> = {
  row: ({ row }) => String(row),
  subscription: ({ candidate }) => candidate.id,
  customer: ({ candidate }) => candidate.customer,
  reason: ({ candidate }) => candidate.reason,
  since: ({ candidate }) => candidate.since,
  collection_scheme: ({ candidate }) => candidate.scheme,
  attempts: ({ attempts }) => String(attempts),
  outcome: ({ outcome }) => outcomeLabel(outcome),
  message: ({ message }) => message ?? '',
  new_status: ({ saw }) => textOf(saw?.status),
  new_reason: ({ saw }) => textOf(saw?.needs_attention_reason),
  currency: ({ candidate: { value } }) => ('amounts' in value ? Object.keys(value.amounts).join('; ') : ''),
  list_value: ({ candidate: { value } }) =>
    'amounts' in value ? Object.values(value.amounts).join('; ') : '',
  not_valued: ({ candidate: { value } }) => ('notValued' in value ? value.notValued : ''),
  next_billing_before: ({ candidate }) => candidate.nextBilling,
  next_billing_after: ({ saw }) => textOf(saw?.next_billing),
  resumed_at: ({ resumedAt }) => (resumedAt === null ? '' : new Date(resumedAt).toISOString()),
}

/** Writes recovery.csv. */
export async function writeRecoveryCsv({
  rows,
  to,
}: {
  rows: AsyncIterable<RecoveryRow> | Iterable<RecoveryRow>
  to: string
}): Promise<void> {
  async function* lines() {
    yield Object.keys(columns)
    for await (const row of rows) yield Object.values(columns).map((cell) => guardFormula(cell(row)))
  }
  await pipeline(lines, stringify({ quoted_match: /[\r\n]/ }), createWriteStream(to))
}
