import { isRecord, parseLossless } from '../billing/lossless-json.ts'
import { parseBody } from '../changes/body.ts'
import { differencesOf, textOf } from '../changes/compare-fields.ts'
import { placeOf } from '../changes/report.ts'
import { countLabels } from '../runs/view/counts.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { ImportPlan } from './input.ts'
import { type ImportKind, importKinds } from './kinds.ts'

const mostAdded = 5

/**
 * The first sent rows of an import, with the value of each field: `*` marks what the service stored differently, `+` what
 * it added.
 */
export async function describeSentRows(of: {
  ledger: Pick<Ledger, 'rows'>
  plan: Pick<ImportPlan, 'run' | 'kind'>
  most: number
}): Promise<string> {
  const { ledger, plan, most } = of
  const texts: string[] = []
  for await (const row of ledger.rows({ run: plan.run })) {
    if (row.sentAt !== null) texts.push(describe(row, importKinds[plan.kind]))
    if (texts.length === most) break
  }
  return texts.join('\n')
}

function describe(change: LedgerRow, { schema }: ImportKind): string {
  const body = parseBody(change)
  const answer = toAnswer(change)
  const differences = answer === undefined ? [] : differencesOf({ schema, sent: body, stored: answer })
  const differs = new Set(differences.map(({ field }) => field))
  const added = Object.entries(answer ?? {}).filter(
    ([field, value]) =>
      !(field in body) && value !== null && (typeof value !== 'object' || JSON.isRawJSON(value)),
  )
  const lines = [
    ...fieldsIn(body).flatMap(([field, text]) => (differs.has(field) ? [] : [[' ', field, text] as const])),
    ...differences.map(
      ({ field, sent, stored }) => ['*', field, `${sent}  stored as ${stored || 'nothing'}`] as const,
    ),
    ...added.slice(0, mostAdded).map(([field, value]) => ['+', field, textOf(value)] as const),
  ]
  const width = Math.max(0, ...lines.map(([, field]) => field.length))
  const more = added.length - mostAdded
  return [
    `Row ${change.row}: ${countLabels[placeOf(change)]}${change.error === null ? '' : `, ${change.error}`}`,
    ...lines.map(([mark, field, text]) => `${mark} ${field.padEnd(width)}  ${text}`),
    ...(more > 0 ? [`  and ${more} more fields of the service`] : []),
  ].join('\n')
}

/** Each field with its value, those of lists with their number from 1: `lines.2.amount`. */
function fieldsIn(value: unknown, path = ''): [field: string, text: string][] {
  const at = (name: string | number) => (path === '' ? String(name) : `${path}.${name}`)
  if (Array.isArray(value)) return value.flatMap((item: unknown, index) => fieldsIn(item, at(index + 1)))
  if (isRecord(value)) return Object.entries(value).flatMap(([name, inner]) => fieldsIn(inner, at(name)))
  return [[path, textOf(value)]]
}

/** Undefined if the answer is incomplete. */
function toAnswer({ answer }: LedgerRow): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = parseLossless(answer ?? 'null')
    return isRecord(parsed) ? parsed : undefined
  } catch {
    return undefined
  }
}
