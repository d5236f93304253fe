import { Big } from 'big.js'
import type { Body } from '../billing/client.ts'
import { numberText } from '../billing/lossless-json.ts'
import { textOf } from '../changes/compare-fields.ts'
import { fieldsOf, type Numeric } from '../billing/resources/fields.ts'
import { formatAmount, formatCount } from '../runs/view/format.ts'
import { nearestName } from '../tables/nearest-name.ts'
import type { Conventions } from './cells/locale.ts'
import { type DecimalMark, readNumber } from './cells/numbers.ts'
import { MappingError, quote, say } from './errors.ts'
import type { ImportSettings } from './input.ts'
import type { ImportKind } from './kinds.ts'
import { aboutColumn, type Problem } from './problems.ts'

/**
 * Totals that a person compares with the sheet's own sums. Sums are exact, as decimal strings with a point.
 */
export interface ControlTotals {
  /** Rows of the file, excluding the header and blank rows. */
  rows: number
  changes: number
  /** The file's decimal mark, if a cell or option shows it; for renderers. */
  decimal?: DecimalMark | undefined
  /** By column: `total`, `lines.amount`. */
  sums: Record<string, string>
  /** The same for each value of `by.field` (a retention's document type), if the kind has one. */
  by?: { field: string; values: Record<string, { changes: number; sums: Record<string, string> }> }
}

/**
 * The most values whose totals a report can show: more are not document types but a column in the wrong
 * place.
 */
const mostValues = 100

/**
 * Totals go into Temporal's history: longer values are not document types or currencies, but may be personal
 * identifiers.
 */
const longestValue = 6

export function createControlTotals(kind: ImportKind) {
  const columns = amountColumns(kind)
  const all = createSums()
  const byValue = new Map<string, Sums>()
  let rows = 0
  return {
    add({ body, rows: taken }: { body: Body; rows: number }) {
      rows += taken
      const groups = [all]
      if (kind.totalsBy !== undefined) {
        const text = textOf(body[kind.totalsBy])
        const value = text.length > longestValue ? 'other' : text
        const group = byValue.get(value) ?? createSums()
        if (byValue.size < mostValues) byValue.set(value, group)
        groups.push(group)
      }
      for (const group of groups) group.changes += 1
      for (const column of columns) addAmounts(column, body, groups)
    },
    totals(): ControlTotals {
      const values = [...byValue].map(([value, group]) => [
        value,
        { changes: group.changes, sums: group.sums() },
      ])
      return {
        rows,
        changes: all.changes,
        sums: all.sums(),
        ...(kind.totalsBy !== undefined && {
          by: {
            field: kind.totalsBy,
            values: Object.fromEntries(values) as NonNullable<ControlTotals['by']>['values'],
          },
        }),
      }
    },
  }
}

type Sums = ReturnType<typeof createSums>

function createSums() {
  const sums = new Map<string, ExactSum>()
  return {
    changes: 0,
    add(name: string, digits: string) {
      let sum = sums.get(name)
      if (sum === undefined) sums.set(name, (sum = createExactSum()))
      sum.add(digits)
    },
    sums: () => Object.fromEntries([...sums].map(([name, sum]) => [name, sum.total()])),
  }
}

interface AmountColumn {
  name: string
  field: string
  /** The field within its items, if it is a list. */
  inner?: string
}

/** Numbers whose sum means nothing, such as percentages or conversion factors. */
const noAmount = /percent|^custom_change$/

export function amountColumns({ schema }: ImportKind): AmountColumn[] {
  return fieldsOf(schema).flatMap(([field, meta]): AmountColumn[] => {
    if (meta.write === 'readOnly') return []
    if (meta.kind === 'decimal') return noAmount.test(field) ? [] : [{ name: field, field }]
    if (meta.kind !== 'list') return []
    return fieldsOf(meta.fields).flatMap(([inner, { kind, write }]) =>
      kind !== 'decimal' || write === 'readOnly' || noAmount.test(inner)
        ? []
        : [{ name: `${field}.${inner}`, field, inner }],
    )
  })
}

function addAmounts({ field, inner, name }: AmountColumn, body: Body, groups: readonly Sums[]): void {
  const value = body[field]
  const amounts = inner === undefined || !Array.isArray(value) ? [value] : value
  for (const item of amounts as readonly unknown[]) {
    const amount = inner === undefined ? item : (item as Body | undefined)?.[inner]
    if (amount === undefined || amount === null) continue
    const digits = numberText(amount as Numeric)
    for (const group of groups) group.add(name, digits)
  }
}

/** An exact sum of plain decimals (digits, a point, a sign). */
interface ExactSum {
  add(digits: string): void
  /** In plain digits, with as many decimal places as the longest summand. */
  total(): string
}

export function createExactSum(): ExactSum {
  let sum = new Big(0)
  let places = 0
  return {
    add(digits) {
      const point = digits.indexOf('.')
      if (point !== -1) places = Math.max(places, digits.length - point - 1)
      sum = sum.plus(digits)
    },
    total: () => sum.toFixed(places),
  }
}

/** Conditions from the sheet's own totals. */
export type Expectations = Pick<ImportSettings, 'expectRows' | 'expectTotals'>

/**
 * Splits `lines.amount=1234,56` into column and sum.
 * @throws {MappingError}
 */
export function parseExpectedTotal(text: string): [column: string, sum: string] {
  const at = text.indexOf('=')
  if (at < 1 || at === text.length - 1)
    throw new MappingError(say`--expect-total ${quote(text)} is not a pair such as lines.amount=1234.56.`)
  return [text.slice(0, at).trim(), text.slice(at + 1).trim()]
}

interface Check extends Expectations {
  kind: ImportKind
  totals: ControlTotals
  conventions: Conventions
}

export function findUnmet(check: Check): Problem[] {
  const { expectRows, expectTotals, totals } = check
  const problems: Problem[] = []
  if (expectRows !== undefined && expectRows !== totals.rows)
    problems.push(
      aboutColumn('--expect-rows', {
        rule: 'expected',
        value: String(expectRows),
        message: `rows were expected, but the sheet has ${formatCount(totals.rows)}`,
      }),
    )
  for (const [column, value] of Object.entries(expectTotals ?? {})) {
    const message = unmetReason(column, value, check)
    if (message !== undefined)
      problems.push(aboutColumn(`--expect-total ${column}`, { rule: 'expected', value, message }))
  }
  return problems
}

function unmetReason(column: string, value: string, check: Check): string | undefined {
  const { kind, totals, conventions } = check
  const known = amountColumns(kind).map(({ name }) => name)
  if (!known.includes(column)) {
    const near = nearestName(column, known)
    return `was expected, but this column has no total${near === undefined ? '' : `; did you mean ${near}?`}`
  }
  const reading = readNumber(value, conventions.decimal ?? totals.decimal)
  if ('message' in reading) return reading.message
  if ('readings' in reading)
    return `could mean ${reading.readings.join(' or ')}. Set --locale, --decimal , or --decimal .`
  const sum = totals.sums[column] ?? '0'
  const difference = new Big(sum).minus(reading.number).abs()
  if (difference.eq(0)) return undefined
  const places = Math.max(...[sum, reading.number].map((digits) => digits.split('.')[1]?.length ?? 0))
  const shown = (digits: string) => formatAmount(digits, totals.decimal ?? reading.mark)
  return `was expected, but the sheet adds up to ${shown(sum)}. The sheet and your total differ by ${shown(difference.toFixed(places))}`
}
