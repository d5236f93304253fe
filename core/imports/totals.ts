import { Big } from 'big.js'
import type { Body } from '../billing/client.ts'
import { numberText } from '../billing/lossless-json.ts'
import { fieldsOf, type Numeric } from '../billing/resources/fields.ts'
import { parseBody } from '../changes/body.ts'
import { textOf } from '../changes/compare-fields.ts'
import { placeOf } from '../changes/report.ts'
import { formatAmount, formatCount } from '../runs/view/format.ts'
import type { Table } from '../runs/view/view.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import { addDecimals, isAmount, subtractDecimals } from '../tables/decimal-sum.ts'
import { nearestName } from '../tables/nearest-name.ts'
import { type Conventions, type DecimalMark, readNumber } from './cells/notation.ts'
import type { ImportSettings } from './input.ts'
import type { ImportKind } from './kinds.ts'
import { aboutColumn, type Problem } from './problems.ts'

interface Totals {
  changes: number
  /** By column: `total`, `lines.amount`. Exact, as decimal strings with a point. */
  sums: Record<string, string>
  /** The same for each value of `by.field` (a retention's document type), if the kind has one. */
  by?: { field: string; values: Record<string, Totals> }
}

/** Totals that a person compares with the sheet's own sums. */
export interface ControlTotals extends Totals {
  /** Rows of the file, excluding the header and blank rows. */
  rows: number
  /** The file's decimal mark, if a cell or option shows it; for renderers. */
  decimal?: DecimalMark | undefined
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

export function createControlTotals({ schema, totalsBy }: ImportKind) {
  const columns = amountColumns(schema)
  const all = emptyTotals()
  const byValue = new Map<string, Totals>()
  let rows = 0
  return {
    add({ body, rows: taken }: { body: Body; rows: number }) {
      rows += taken
      addBody(all, body, columns)
      if (totalsBy === undefined) return
      const text = textOf(body[totalsBy])
      const value = text.length > longestValue ? 'other' : text
      const group = byValue.get(value) ?? emptyTotals()
      if (byValue.size < mostValues) byValue.set(value, group)
      addBody(group, body, columns)
    },
    totals: (): ControlTotals => ({
      rows,
      ...all,
      ...(totalsBy !== undefined && { by: { field: totalsBy, values: Object.fromEntries(byValue) } }),
    }),
  }
}

const emptyTotals = (): Totals => ({ changes: 0, sums: {} })

function addBody(totals: Totals, body: Body, columns: readonly AmountColumn[]): void {
  totals.changes += 1
  for (const column of columns)
    for (const digits of amountsIn(body, column))
      totals.sums[column.name] = addDecimals(totals.sums[column.name] ?? '0', digits)
}

const placesIn = (digits: string): number => digits.split('.')[1]?.length ?? 0

interface AmountColumn {
  name: string
  field: string
  /** The field within its items, if it is a list. */
  inner?: string
}

function amountColumns(schema: ImportKind['schema']): AmountColumn[] {
  return fieldsOf(schema).flatMap(([field, meta]): AmountColumn[] => {
    if (meta.write === 'readOnly') return []
    if (meta.kind === 'decimal') return isAmount(field) ? [{ name: field, field }] : []
    if (meta.kind !== 'list') return []
    return amountColumns(meta.fields).flatMap(({ name, inner }) =>
      inner === undefined ? [{ name: `${field}.${name}`, field, inner: name }] : [],
    )
  })
}

function amountsIn(body: Body, { field, inner }: AmountColumn): string[] {
  const value = body[field]
  const items: unknown[] =
    inner === undefined
      ? [value]
      : Array.isArray(value)
        ? value.map((item: Body | undefined) => item?.[inner])
        : []
  return items.flatMap((amount) =>
    amount === undefined || amount === null ? [] : [numberText(amount as Numeric)],
  )
}

/** Conditions from the sheet's own totals. */
export type Expectations = Pick<ImportSettings, 'expectRows' | 'expectTotals'>

export function findUnmet(
  { schema }: ImportKind,
  totals: ControlTotals & Pick<Receipt, 'columns'>,
  { expectRows, expectTotals = {} }: Expectations,
  { decimal = totals.decimal }: Conventions,
): Problem[] {
  const problems: Problem[] = []
  const report = (option: string, value: string, message: string) =>
    problems.push(aboutColumn(option, { rule: 'expected', value, message }))
  if (expectRows !== undefined && expectRows !== totals.rows) {
    const message = `rows were expected, but the sheet has ${formatCount(totals.rows)}`
    report('--expect-rows', String(expectRows), message)
  }
  const known = amountColumns(schema).map(({ name }) => name)
  for (const [column, value] of Object.entries(expectTotals)) {
    const unmet = (message: string) => report(`--expect-total ${column}`, value, message)
    const near = nearestName(column, known)
    const reading = readNumber(value, decimal)
    // By its own name or, as the preview shows it, by the sheet's.
    const names = known.filter((name) => name === column || totals.columns?.[name] === column)
    const inSheet = names.filter((name) => name in totals.sums)
    const [total, other] = inSheet.length > 0 ? inSheet : names
    const sum = totals.sums[total ?? ''] ?? '0'
    if (total === undefined)
      unmet(
        `was expected, but this column has no total${near === undefined ? '' : `; did you mean ${near}?`}`,
      )
    else if (other !== undefined)
      unmet(
        `could be the sum of ${column} in the sheet or of the field ${column}, which the sheet has in another column. Rename that column of the sheet`,
      )
    else if ('message' in reading) unmet(reading.message)
    else if ('readings' in reading)
      unmet(
        `could mean ${reading.readings.join(' or ')}. Set --locale, --input decimal=',' or --input decimal='.'.`,
      )
    else if (!new Big(sum).eq(reading.value)) {
      const difference = subtractDecimals(sum, reading.value).replace('-', '')
      const shown = (digits: string) => formatAmount(digits, totals.decimal ?? reading.way)
      unmet(
        `was expected, but the sheet adds up to ${shown(sum)}. The sheet and your total differ by ${shown(difference)}`,
      )
    }
  }
  return problems
}

/** The control totals of a file, split into done and not done, which add up to the file's. */
export interface Receipt {
  /** Of the rows to send again, if there are some. */
  file: ControlTotals
  isAgain?: true
  /** Absent if nothing was staged. */
  done?: Totals
  notDone?: Totals
  /** The columns of the sheet that each total and group adds up, where they have other names. */
  columns?: Readonly<Record<string, string>>
}

/** The columns of a sheet by the name of their total. A header may be anything, so this stays with the file. */
export function columnNames(
  columns: readonly { column: string; field: string }[] = [],
): Record<string, string> {
  // Each of `lines.1.amount`, `lines.2.amount` is part of `lines.amount`.
  const byTotal = Map.groupBy(columns, ({ field }) => field.replaceAll(/\.\d+(?=\.)/g, ''))
  return Object.fromEntries(
    Array.from(byTotal, ([total, all]) => [total, all.map(({ column }) => column).join(' + ')]),
  )
}

/** Adds up the changes of a run, and those of them that are done. */
export function createReceipt(kind: ImportKind) {
  const [all, done] = [createControlTotals(kind), createControlTotals(kind)]
  let isStaged = false
  return {
    add(row: LedgerRow): void {
      isStaged = true
      const change = { body: parseBody(row), rows: 0 }
      all.add(change)
      if (placeOf(row) === 'done') done.add(change)
    },
    /**
     * Every change that the ledger does not show as done counts as not done, even one it lacks. Of a file whose rows are sent
     * again, the others are not this run's.
     * @param again the number of rows to send again
     * @param columns the sheet's own names
     */
    receipt(whole: ControlTotals, again = 0, columns?: Receipt['columns']): Receipt {
      const named = columns && { columns }
      if (!isStaged) return { file: whole, ...named }
      const isAgain = again > 0
      const file = isAgain ? { ...whole, ...pad(whole, all.totals()), rows: again } : whole
      const own = pad(file, done.totals())
      const notDone = combine(file, own, (whole, part) => whole.minus(part))
      return { file, ...(isAgain && { isAgain }), done: own, notDone, ...named }
    },
  }
}

/** Totals with the columns, groups and decimal places of the file's. */
const pad = (file: Totals, totals: Totals): Totals => combine(file, totals, (_, part) => part)

function combine(whole: Totals, part: Totals | undefined, by: (whole: Big, part: Big) => Big): Totals {
  const { changes, sums, by: groups } = whole
  const sumOf = ([column, sum]: [string, string]) => [
    column,
    by(new Big(sum), new Big(part?.sums[column] ?? '0')).toFixed(placesIn(sum)),
  ]
  const groupOf = ([value, group]: [string, Totals]) => [value, combine(group, part?.by?.values[value], by)]
  return {
    changes: by(new Big(changes), new Big(part?.changes ?? 0)).toNumber(),
    sums: Object.fromEntries(Object.entries(sums).map(sumOf)) as Totals['sums'],
    ...(groups && {
      by: {
        field: groups.field,
        values: Object.fromEntries(Object.entries(groups.values).map(groupOf)) as typeof groups.values,
      },
    }),
  }
}

/** Formats a receipt for comparison with the sheet's own sums. */
export function toReceiptTables(receipt: Receipt | null): Table[] {
  if (receipt === null) return []
  const { file, isAgain, done, notDone, columns: names = {} } = receipt
  const whole = isAgain ? 'sent again' : 'file'
  const columns = Object.keys(file.sums)
  const line = (name: string, totals: Totals | undefined) =>
    totals === undefined
      ? []
      : [
          [
            name,
            file.decimal === ',' ? formatAmount(String(totals.changes), ',') : totals.changes,
            ...columns.map((column) => formatAmount(totals.sums[column] ?? '', file.decimal)),
          ],
        ]
  const groups = Object.entries(file.by?.values ?? {}).flatMap(([value, group]) => {
    const field = file.by?.field ?? ''
    const name = `${names[field] ?? field} ${value}`
    if (done === undefined) return line(name, group)
    return [
      ...line(`${name}: ${whole}`, group),
      ...line(`${name}: done`, done.by?.values[value]),
      ...line(`${name}: not done`, notDone?.by?.values[value]),
    ]
  })
  return [
    {
      title: 'Control totals',
      head: ['', 'changes', ...columns.map((column) => names[column] ?? column)],
      rows: [
        ...line(`${whole} (${file.rows} ${file.rows === 1 ? 'row' : 'rows'})`, file),
        ...line('done', done),
        ...line('not done', notDone),
        ...groups,
      ],
    },
  ]
}
