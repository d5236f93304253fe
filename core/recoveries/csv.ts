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
import type { Selected } from './select.ts'

/** A change of the ledger, as far as recovery.csv has it. */
type RecoveryRow = Pick<
  LedgerRow,
  | 'row'
  | 'body'
  | 'state'
  | 'outcome'
  | 'error'
  | 'resolvedBy'
  | 'resolvedWhy'
  | 'sends'
  | 'sentAt'
  | 'answer'
>

const unsent = { sends: 0, sentAt: null, answer: null, resolvedBy: null, resolvedWhy: null }

/** A row of a dry run, with the outcome that it would have. */
export const toDryRow = ({ row, body, closed }: Selected): RecoveryRow => ({
  row,
  body: JSON.stringify(body),
  ...(closed ?? { state: 'staged', outcome: 'wouldResume', error: null }),
  ...unsent,
})

/** The outcome of a change if it has one, otherwise its state. */
export function outcomeOf({ state, outcome }: Pick<LedgerRow, 'state' | 'outcome'>): string {
  const place = placeOf({ state, outcome })
  if (place === 'unknown') return 'unknown'
  return outcome ?? (place === 'staged' ? 'notTried' : place)
}

type Shown = Omit<RecoveryRow, 'body'> & { body: Candidate }

const columns: Readonly<Record<string, (row: Shown) => string>> = {
  row: ({ row }) => String(row),
  subscription: ({ body }) => body.id,
  customer: ({ body }) => body.customer,
  reason: ({ body }) => body.snapshot.reason,
  since: ({ body }) => body.snapshot.since,
  collection_scheme: ({ body }) => body.collection_scheme,
  attempts: ({ sends }) => String(sends),
  outcome: (row) => outcomeLabel(outcomeOf(row)),
  message: (row) => explain(row) ?? '',
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
    for await (const row of rows) {
      const shown = { ...row, body: parseBody(row) as Candidate }
      yield Object.values(columns).map((cell) => guardFormula(cell(shown)))
    }
  }
  await pipeline(lines, stringify({ quoted_match: /[\r\n]/ }), createWriteStream(to))
}
