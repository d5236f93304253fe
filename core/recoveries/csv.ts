import { stringify } from 'csv-stringify'
import { createWriteStream } from 'node:fs'
import { pipeline } from 'node:stream/promises'
import { parseBody } from '../changes/body.ts'
import { explain } from '../changes/view.ts'
import { textOf } from '../changes/compare-fields.ts'
import { factsFrom } from '../changes/kinds/resume-subscription.ts'
import { placeOf } from '../changes/report.ts'
import { outcomeLabel } from '../runs/view/counts.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { guardFormula } from '../tables/formula-guard.ts'
import type { Candidate } from './candidates.ts'
import type { Selection } from './select.ts'

/** The outcome of one subscription; in a dry run, the outcome it would have. */
export interface RecoveryRow extends Pick<LedgerRow, 'row' | 'sends' | 'sentAt' | 'answer'> {
  body: Candidate
  outcome: string
  message: string | null
}

export const toRecoveryRow = (row: LedgerRow): RecoveryRow => ({
  ...row,
  body: parseBody(row) as Candidate,
  outcome: outcomeOf(row),
  message: explain(row),
})

/** A row of a dry run, with the outcome that it would have. */
export const toDryRow = ({ row, body, closed }: Selection['rows'][number]): RecoveryRow => ({
  row,
  body,
  outcome: closed?.outcome ?? 'wouldResume',
  message: closed?.error ?? null,
  sends: 0,
  sentAt: null,
  answer: null,
})

/** The outcome of a change if it has one, otherwise its state. */
export function outcomeOf({ state, outcome }: Pick<LedgerRow, 'state' | 'outcome'>): string {
  const place = placeOf({ state, outcome })
  if (place === 'unknown') return 'unknown'
  return outcome ?? (place === 'staged' ? 'notTried' : place)
}

const columns: Readonly<Record<string, (row: RecoveryRow) => string>> = {
  row: ({ row }) => String(row),
  subscription: ({ body }) => body.id,
  customer: ({ body }) => body.customer,
  reason: ({ body }) => body.snapshot.reason,
  since: ({ body }) => body.snapshot.since,
  collection_scheme: ({ body }) => body.collection_scheme,
  attempts: ({ sends }) => String(sends),
  outcome: ({ outcome }) => outcomeLabel(outcome),
  message: ({ message }) => message ?? '',
  new_status: ({ answer }) => textOf(factsFrom(answer)?.status),
  new_reason: ({ answer }) => textOf(factsFrom(answer)?.needs_attention_reason),
  currency: ({ body }) => Object.keys(amountsIn(body)).join('; '),
  list_value: ({ body }) => Object.values(amountsIn(body)).join('; '),
  not_valued: ({ body: { snapshot } }) => ('notValued' in snapshot.value ? snapshot.value.notValued : ''),
  next_billing_before: ({ body }) => body.snapshot.next_billing,
  next_billing_after: ({ answer }) => textOf(factsFrom(answer)?.next_billing),
  resumed_at: ({ sends, sentAt }) => (sends === 0 || sentAt === null ? '' : new Date(sentAt).toISOString()),
}

const amountsIn = ({ snapshot: { value } }: Candidate) => ('amounts' in value ? value.amounts : {})

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
