import { join } from 'node:path'
import { parseBody } from '../changes/body.ts'
import { differencesOf, textOf } from '../changes/compare-fields.ts'
import { placeOf } from '../changes/report.ts'
import { parseLossless } from '../billing/lossless-json.ts'
import { countLabels } from '../runs/view/counts.ts'
import type { Ledger } from '../state/ledger/ledger.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { Conventions } from './cells/locale.ts'
import type { Unit } from './group-rows.ts'
import { importKinds } from './kinds.ts'
import { eachRow, type FieldTarget } from './mapping/field-target.ts'
import { conventionsIn } from './mapping/mapping.ts'
import { openFile, openUnits } from './open-file.ts'
import type { ImportPlan } from './plan.ts'
import { fileOf, readRunNotes } from './run-files.ts'

/** A sent row as its sheet has it, with what the service changed or added. */
export interface SentRow {
  row: number
  state: string
  /** Why it is not done. */
  error: string | null
  cells: { column: string; sent: string; stored?: string }[]
  /** Fields that the service has and the row does not. */
  added: { field: string; stored: string }[]
}

/** Reads the first sent rows of an import. */
export async function readSentRows({
  ledger,
  plan,
  dataDir,
  most,
}: {
  ledger: Ledger
  plan: ImportPlan
  dataDir: string
  most: number
}): Promise<SentRow[]> {
  const sent = new Map<number, LedgerRow>()
  for await (const row of ledger.rows({ run: plan.run })) {
    if (row.sentAt !== null) sent.set(row.row, row)
    if (sent.size === most) break
  }
  if (sent.size === 0) return []
  const { check } = await readRunNotes(join(dataDir, plan.folder))
  const input = await fileOf({ plan, dataDir, check })
  const file = await openFile(input)
  const columns = file.columnMapping.targets.flatMap((target, index) =>
    target === undefined ? [] : [{ target, index, name: file.table.header[index] ?? '' }],
  )
  const conventions = conventionsIn(input.mapping ?? {})
  const rows: SentRow[] = []
  const { units } = await openUnits(input)
  for await (const unit of units) {
    const change = sent.get(unit[0].row)
    if (change !== undefined) rows.push(toSentRow({ unit, change, columns, conventions, plan }))
    if (rows.length === sent.size) break
  }
  return rows
}

interface SheetColumn {
  target: FieldTarget
  index: number
  name: string
}

function toSentRow({
  unit,
  change,
  columns,
  conventions,
  plan,
}: {
  unit: Unit
  change: LedgerRow
  columns: readonly SheetColumn[]
  conventions: Conventions
  plan: ImportPlan
}): SentRow {
  const body = parseBody(change)
  const answer = toAnswer(change.answer)
  const { schema } = importKinds[plan.kind]
  const differences = new Map(
    (answer === undefined ? [] : differencesOf({ schema, sent: body, stored: answer })).map((difference) => [
      difference.field,
      difference,
    ]),
  )
  const cells = unit.flatMap((row, item) =>
    columns.flatMap(({ target, index, name }): SentRow['cells'] => {
      const isOfItem = target.path.includes(eachRow)
      const text = (row.cells[index] ?? '').trim()
      // Further rows of a change repeat its own columns.
      if (text === '' || (item > 0 && !isOfItem)) return []
      const field = target.path
        .map((step) => (step === eachRow ? item + 1 : typeof step === 'number' ? step + 1 : step))
        .join('.')
      const difference = differences.get(field)
      differences.delete(field)
      const column = unit.length > 1 && isOfItem ? `${name} (line ${item + 1})` : name
      if (difference === undefined) return [{ column, sent: text }]
      return [{ column, sent: text, stored: inNotation(difference.stored, target, conventions) }]
    }),
  )
  const others = [...differences.values()].map(({ field, sent, stored }) => ({ column: field, sent, stored }))
  const added = Object.entries(answer ?? {}).flatMap(([field, value]) => {
    const isScalar = typeof value !== 'object' || JSON.isRawJSON(value)
    return field in body || value === null || !isScalar ? [] : [{ field, stored: textOf(value) }]
  })
  const state = countLabels[placeOf(change)]
  return { row: change.row, state, error: change.error, cells: [...cells, ...others], added }
}

/** Undefined if the answer is incomplete. */
function toAnswer(answer: string | null): Record<string, unknown> | undefined {
  try {
    const parsed: unknown = parseLossless(answer ?? 'null')
    return typeof parsed === 'object' && parsed !== null ? { ...parsed } : undefined
  } catch {
    return undefined
  }
}

/** Formats a stored value as the sheet writes such values. */
function inNotation(stored: string, { meta }: FieldTarget, { decimal, dates }: Conventions): string {
  if (meta.kind === 'decimal' && decimal === ',') return stored.replace('.', ',')
  const [, year, month, day] = /^(\d{4})-(\d\d)-(\d\d)/.exec(stored) ?? []
  if (meta.kind !== 'date' || year === undefined || month === undefined || day === undefined) return stored
  if (dates === 'dmy') return `${day}-${month}-${year}`
  return dates === 'mdy' ? `${month}/${day}/${year}` : stored
}

const mostAdded = 5

/** The rows as vertical lists: `*` marks what the service stored differently, `+` what it added. */
export function describeSentRows(rows: readonly SentRow[]): string {
  return rows
    .map(({ row, state, error, cells, added }) => {
      const shown = added.slice(0, mostAdded)
      const width = Math.max(
        0,
        ...cells.map(({ column }) => column.length),
        ...shown.map(({ field }) => field.length),
      )
      const line = (mark: string, name: string, text: string) => `${mark} ${name.padEnd(width)}  ${text}`
      const more = added.length - shown.length
      return [
        `Row ${row}: ${state}${error === null ? '' : `, ${error}`}`,
        ...cells.map(({ column, sent, stored }) =>
          stored === undefined
            ? line(' ', column, sent)
            : line('*', column, `${sent}  stored as ${stored || 'nothing'}`),
        ),
        ...shown.map(({ field, stored }) => line('+', field, stored)),
        ...(more === 0 ? [] : [`  and ${more} more fields of the service; --show json has them`]),
      ].join('\n')
    })
    .join('\n')
}
