import { parseLossless } from '../billing/lossless-json.ts'
import { parseBody } from '../changes/body.ts'
import { differencesOf, textOf } from '../changes/compare-fields.ts'
import { placeOf } from '../changes/report.ts'
import type { RunNotes } from '../runs/run-notes.ts'
import { countLabels } from '../runs/view/counts.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { withMark, writeDate } from './cells/notation.ts'
import type { ImportPlan } from './input.ts'
import { eachRow } from './mapping/columns.ts'
import { conventionsIn } from './mapping/mapping.ts'
import { openFile } from './open-file.ts'
import type { Unit } from './parsed-changes.ts'
import { fileOf, type ImportNotes } from './run-files.ts'

const mostAdded = 5

/**
 * The first sent rows of an import, as vertical lists in the notation of their sheet: `*` marks what the service
 * stored differently, `+` what it added.
 */
export async function describeSentRows(of: {
  ledger: Pick<Ledger, 'rows'>
  notes: RunNotes
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
  const { check } = await of.notes.read<ImportNotes>(plan.run)
  const input = await fileOf({ plan, dataDir, check })
  const file = await openFile(input)
  const { decimal = '.', dates = 'ymd' } = conventionsIn(input.mapping ?? {})
  const texts: string[] = []
  for await (const unit of file.units()) {
    const change = sent.get(unit[0].row)
    if (change !== undefined) texts.push(describe(unit, change))
    if (texts.length === sent.size) break
  }
  return texts.join('\n')

  function describe(unit: Unit, change: LedgerRow): string {
    const body = parseBody(change)
    const answer = toAnswer(change)
    const { schema } = file.kind
    const found = answer === undefined ? [] : differencesOf({ schema, sent: body, stored: answer })
    const differences = new Map(found.map((difference) => [difference.field, difference]))
    const lines: [mark: ' ' | '*' | '+', name: string, text: string][] = []
    const addChanged = (name: string, sent: string, stored: string) =>
      lines.push(['*', name, `${sent}  stored as ${stored || 'nothing'}`])
    for (const [item, row] of unit.entries())
      for (const { target, index, header } of file.columns) {
        const isOfItem = target.path.includes(eachRow)
        const text = (row.cells[index] ?? '').trim()
        // Further rows of a change repeat its own columns.
        if (text === '' || (item > 0 && !isOfItem)) continue
        const field = target.path
          .map((step) => (step === eachRow ? item + 1 : typeof step === 'number' ? step + 1 : step))
          .join('.')
        const name = unit.length > 1 && isOfItem ? `${header} (line ${item + 1})` : header
        const difference = differences.get(field)
        differences.delete(field)
        if (difference === undefined) lines.push([' ', name, text])
        else addChanged(name, text, inNotation(difference.stored, target.meta.kind))
      }
    for (const { field, sent, stored } of differences.values()) addChanged(field, sent, stored)
    const added = Object.entries(answer ?? {}).filter(([field, value]) => {
      const isScalar = typeof value !== 'object' || JSON.isRawJSON(value)
      return !(field in body) && value !== null && isScalar
    })
    for (const [field, value] of added.slice(0, mostAdded)) lines.push(['+', field, textOf(value)])
    const width = Math.max(0, ...lines.map(([, name]) => name.length))
    const more = added.length - mostAdded
    return [
      `Row ${change.row}: ${countLabels[placeOf(change)]}${change.error === null ? '' : `, ${change.error}`}`,
      ...lines.map(([mark, name, text]) => `${mark} ${name.padEnd(width)}  ${text}`),
      ...(more > 0 ? [`  and ${more} more fields of the service`] : []),
    ].join('\n')
  }

  /** Formats a stored value as the sheet writes such values. */
  function inNotation(stored: string, kind: string): string {
    if (kind === 'decimal') return withMark(stored, decimal)
    return kind === 'date' && /^\d{4}-\d\d-\d\d/.test(stored) ? writeDate(stored.slice(0, 10), dates) : stored
  }
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
