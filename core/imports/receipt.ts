import { Big } from 'big.js'
import { parseBody } from '../changes/body.ts'
import { placeOf } from '../changes/report.ts'
import { countLabels, places, type ReportCounts } from '../runs/view/counts.ts'
import { formatAmount } from '../runs/view/format.ts'
import type { Table } from '../runs/view/view.ts'
import type { LedgerRow } from '../state/ledger/row.ts'
import type { FileCheck } from './check.ts'
import { type ControlTotals, createControlTotals } from './control-totals.ts'
import type { ImportKind } from './kinds.ts'

type Place = keyof ReportCounts
type Totals = Pick<ControlTotals, 'changes' | 'sums' | 'by'>

/** The control totals of a file, split into done and not done, which add up to the file's. */
export interface Receipt {
  /** Of the rows to send again, if there are some. */
  file: ControlTotals
  isAgain?: true
  /** Absent if nothing was staged. */
  done?: Totals
  notDone?: Totals
  /** What is not done, by state. */
  states?: Partial<Record<Place, Totals>>
  /** The columns of the sheet that each total and group adds up, where they have other names. */
  columns?: Readonly<Record<string, string>>
}

/** The columns of a sheet by the name of their total. A header may be anything, so this stays with the file. */
export function columnNames(check: Pick<FileCheck, 'columns'> | undefined): Receipt['columns'] {
  const named = (check?.columns ?? []).map(({ column, field }) => ({
    column,
    // Each of `lines.1.amount`, `lines.2.amount` is part of `lines.amount`.
    total: field.replaceAll(/\.\d+(?=\.)/g, ''),
  }))
  const byTotal = Map.groupBy(named, ({ total }) => total)
  return Object.fromEntries(
    [...byTotal].map(([total, all]) => [total, all.map(({ column }) => column).join(' + ')]),
  )
}

export function withoutNames(named: Receipt): Receipt {
  const { columns: _, ...receipt } = named
  return receipt
}

/** Adds up the changes of a run by their state. */
export function createReceipt(kind: ImportKind) {
  const byPlace = new Map<Place, ReturnType<typeof createControlTotals>>()
  const all = createControlTotals(kind)
  return {
    add(row: LedgerRow): void {
      const place = placeOf(row)
      const totals = byPlace.get(place) ?? createControlTotals(kind)
      byPlace.set(place, totals)
      const body = parseBody(row)
      totals.add({ body, rows: 0 })
      all.add({ body, rows: 0 })
    },
    /**
     * Every change that the ledger does not show as done counts as not done, even one it lacks. Of a file whose rows are sent
     * again, the others are not this run's.
     * @param again the number of rows to send again
     * @param columns the sheet's own names
     */
    receipt(whole: ControlTotals, again = 0, columns?: Receipt['columns']): Receipt {
      const named = columns && { columns }
      if (byPlace.size === 0) return { file: whole, ...named }
      const file = again === 0 ? whole : { ...whole, ...pad(whole, all.totals()), rows: again }
      const done = pad(file, byPlace.get('done')?.totals())
      const states = places.flatMap((place) => {
        const totals = place === 'done' ? undefined : byPlace.get(place)?.totals()
        return totals === undefined ? [] : [[place, pad(file, totals)]]
      })
      return {
        file,
        ...(again > 0 && { isAgain: true as const }),
        done,
        notDone: combine(file, done, (whole, part) => whole.minus(part)),
        states: Object.fromEntries(states) as Receipt['states'] & object,
        ...named,
      }
    },
  }
}

/** Totals with the columns, groups and decimal places of the file's. */
const pad = (file: Totals, totals: Totals | undefined): Totals => combine(file, totals, (_, part) => part)

function combine(whole: Totals, part: Totals | undefined, by: (whole: Big, part: Big) => Big): Totals {
  const { changes, sums, by: groups } = whole
  const sumOf = ([column, sum]: [string, string]) => {
    const places = sum.split('.')[1]?.length ?? 0
    return [column, by(new Big(sum), new Big(part?.sums[column] ?? '0')).toFixed(places)]
  }
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
  const { file, isAgain, done, notDone, states = {}, columns: names = {} } = receipt
  const whole = isAgain ? 'sent again' : 'file'
  const columns = Object.keys(file.sums)
  const line = (name: string, { changes, sums }: Totals) => [
    name,
    changes,
    ...columns.map((column) => formatAmount(sums[column] ?? '', file.decimal)),
  ]
  const left = places.flatMap((place) =>
    states[place] === undefined ? [] : [[place, states[place]] as const],
  )
  const [only] = left.length === 1 ? left : []
  const groups = Object.entries(file.by?.values ?? {}).flatMap(([value, group]) => {
    const field = file.by?.field ?? ''
    const name = `${names[field] ?? field} ${value}`
    const [doneOf, leftOf] = [done?.by?.values[value], notDone?.by?.values[value]]
    if (doneOf === undefined || leftOf === undefined) return [line(name, group)]
    return [
      line(`${name}: ${whole}`, group),
      line(`${name}: done`, doneOf),
      line(`${name}: not done`, leftOf),
    ]
  })
  return [
    {
      title: 'Control totals',
      head: ['', 'changes', ...columns.map((column) => names[column] ?? column)],
      rows: [
        line(`${whole} (${file.rows} ${file.rows === 1 ? 'row' : 'rows'})`, file),
        ...(done === undefined ? [] : [line('done', done)]),
        ...(notDone === undefined
          ? []
          : [line(only === undefined ? 'not done' : `not done: ${countLabels[only[0]]}`, notDone)]),
        ...(only === undefined ? left : []).map(([place, totals]) =>
          line(`not done: ${countLabels[place]}`, totals),
        ),
        ...groups,
      ],
    },
  ]
}
