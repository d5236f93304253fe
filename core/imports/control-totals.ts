import { Big } from 'big.js'
import type { Body } from '../billing/client.ts'
import { numberText } from '../billing/lossless-json.ts'
import { textOf } from '../changes/compare-fields.ts'
import { fieldsOf, type Numeric } from '../billing/resources/fields.ts'
import type { DecimalMark } from './cells/numbers.ts'
import type { ImportKind } from './kinds.ts'

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
export interface ExactSum {
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
