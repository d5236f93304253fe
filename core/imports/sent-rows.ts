import { join } from 'node:path'
import { parseLossless } from '../billing/lossless-json.ts'
import { parseBody } from '../changes/body.ts'
import { differencesOf, textOf } from '../changes/compare-fields.ts'
import { placeOf } from '../changes/report.ts'
import { countLabels } from '../runs/view/counts.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { withMark, writeDate } from './cells/notation.ts'
import { eachRow } from './mapping/columns.ts'
import { conventionsIn } from './mapping/mapping.ts'
import { type OpenFile, openFile } from './open-file.ts'
import type { Unit } from './parsed-changes.ts'
import type { ImportPlan } from './input.ts'
import { fileOf, readRunNotes } from './run-files.ts'

const mostAdded = 5

/**
 * The first sent rows of an import, as vertical lists in the notation of their sheet: `*` marks what the service
 * stored differently, `+` what it added.
 */
export async function describeSentRows(of: {
  ledger: Pick<Ledger, 'rows'>
  plan: ImportPlan
  dataDir: string
  most: number
}): Promise<string> {
  const { ledger, plan, dataDir, most } = of
  const sent = new Map<number, LedgerRow>()
  for await (const row of ledger.rows({ run: plan.run })) {
    if (row.sentAt !== null) sent.set(row.row, row)
    if (sent.size === most) break
  }
  if (sent.size === 0) return ''
  const { check } = await readRunNotes(join(dataDir, plan.folder))
  const input = await fileOf({ plan, dataDir, check })
  const file = await openFile(input)
  const inNotation = createNotation(conventionsIn(input.mapping ?? {}))
  const texts: string[] = []
  for await (const unit of file.units()) {
    const change = sent.get(unit[0].row)
    if (change !== undefined) texts.push(describe(unit, { change, file, inNotation }))
    if (texts.length === sent.size) break
  }
  return texts.join('\n')
}

type Line = [mark: ' ' | '*' | '+', name: string, text: string]

function describe(
  unit: Unit,
  of: { change: LedgerRow; file: OpenFile; inNotation: ReturnType<typeof createNotation> },
): string {
  const { change, file, inNotation } = of
  const body = parseBody(change)
  const answer = toAnswer(change)
  const { schema } = file.kind
  const found = answer === undefined ? [] : differencesOf({ schema, sent: body, stored: answer })
  const differences = new Map(found.map((difference) => [difference.field, difference]))
  const changed = (name: string, sent: string, stored: string): Line => [
    '*',
    name,
    `${sent}  stored as ${stored || 'nothing'}`,
  ]
  const cells = unit.flatMap((row, item) =>
    file.columns.flatMap(({ target, index, header }): Line[] => {
      const isOfItem = target.path.includes(eachRow)
      const text = (row.cells[index] ?? '').trim()
      // Further rows of a change repeat its own columns.
      if (text === '' || (item > 0 && !isOfItem)) return []
      const field = target.path
        .map((step) => (step === eachRow ? item + 1 : typeof step === 'number' ? step + 1 : step))
        .join('.')
      const difference = differences.get(field)
      differences.delete(field)
      const name = unit.length > 1 && isOfItem ? `${header} (line ${item + 1})` : header
      return [
        difference === undefined
          ? [' ', name, text]
          : changed(name, text, inNotation(difference.stored, target.meta.kind)),
      ]
    }),
  )
  const others = [...differences.values()].map(({ field, sent, stored }) => changed(field, sent, stored))
  const added = Object.entries(answer ?? {}).flatMap(([field, value]): Line[] => {
    const isScalar = typeof value !== 'object' || JSON.isRawJSON(value)
    return field in body || value === null || !isScalar ? [] : [['+', field, textOf(value)]]
  })
  const lines = [...cells, ...others, ...added.slice(0, mostAdded)]
  const width = Math.max(0, ...lines.map(([, name]) => name.length))
  const more = added.length - mostAdded
  return [
    `Row ${change.row}: ${countLabels[placeOf(change)]}${change.error === null ? '' : `, ${change.error}`}`,
    ...lines.map(([mark, name, text]) => `${mark} ${name.padEnd(width)}  ${text}`),
    ...(more > 0 ? [`  and ${more} more fields of the service`] : []),
  ].join('\n')
}

/** Undefined if the answer is incomplete. */
function toAnswer({ answer }: LedgerRow): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = parseLossless(answer ?? 'null')
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : undefined
  } catch {
    return undefined
  }
}

/** Formats a stored value as the sheet writes such values. */
function createNotation({ decimal = '.', dates = 'ymd' }: ReturnType<typeof conventionsIn>) {
  return (stored: string, kind: string): string => {
    if (kind === 'decimal') return withMark(stored, decimal)
    return kind === 'date' && /^\d{4}-\d\d-\d\d/.test(stored) ? writeDate(stored.slice(0, 10), dates) : stored
  }
}
