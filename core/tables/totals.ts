import { z } from 'zod'
import { toExactInstant } from '../billing/instants.ts'
import { addDecimals, DecimalSum } from './decimal-sum.ts'
import type { Column, Table } from './table.ts'

const count = z.int().min(0)

/** What the cells of a decimal column add up to. */
const columnTotal = z.object({
  /** Exact, with the decimal places of the longest. */
  sum: z.string(),
  /** The number of rows without a number there. */
  empty: count,
  /** The sum of the records with each currency, '' for none, `other` for a text that is not a currency; absent if no column has it. */
  byCurrency: z.record(z.string(), z.string()).exactOptional(),
})

/** When the records were created, as the service wrote it. */
const createdTotals = z.object({
  oldest: z.string(),
  newest: z.string(),
  /** The records of each month (`2026-11`), in the zone that the service writes. Absent if there are too many months. */
  months: z.record(z.string(), count).exactOptional(),
})
type CreatedTotals = z.infer<typeof createdTotals>

/** The totals of the rows of a read, in all tables; `columns` by table and column: `plans.amount`. */
export interface Totals {
  columns: Record<string, z.infer<typeof columnTotal>>
  created?: CreatedTotals
}

/** Totals that tell the values that are no number, which `_extra` has, from cells without a value. */
export const totalsSchema = z.object({
  columns: z.record(z.string(), columnTotal.extend({ unreadable: count })),
  created: createdTotals.exactOptional(),
})
export type JudgedTotals = z.infer<typeof totalsSchema>

/** A century of them. */
const mostMonths = 1_200

export const noTotals = (): Totals => ({ columns: {} })

/** @param misfits how many values did not fit their columns, by path in the record */
export function judgeTotals(
  tables: readonly Table[],
  totals: Totals,
  misfits: Readonly<Record<string, { count: number }>>,
): JudgedTotals {
  const columns: JudgedTotals['columns'] = {}
  for (const [name, { source }] of decimalColumns(tables)) {
    const total = totals.columns[name] ?? { sum: '0', empty: 0 }
    const unreadable = misfits[source]?.count ?? 0
    columns[name] = { ...total, empty: total.empty - unreadable, unreadable }
  }
  const { created } = totals
  if (created?.months === undefined) return { ...totals, columns }
  const months = Object.entries(created.months).toSorted(([a], [b]) => (a < b ? -1 : 1))
  return { columns, created: { ...created, months: Object.fromEntries(months) } }
}

/** By table and column. */
export const decimalColumns = (tables: readonly Pick<Table, 'name' | 'columns'>[]): [string, Column][] =>
  tables.flatMap(({ name, columns }) =>
    columns.flatMap((column): [string, Column][] =>
      column.kind === 'decimal' ? [[`${name}.${column.name}`, column]] : [],
    ),
  )

/** Adds the totals of further rows. */
export function addTotals(totals: Totals, more: Totals): void {
  for (const [name, { sum, empty, byCurrency }] of Object.entries(more.columns)) {
    const known = totals.columns[name] ?? { sum: '0', empty: 0 }
    const sums = { ...known.byCurrency }
    for (const [group, part] of Object.entries(byCurrency ?? {}))
      sums[group] = addDecimals(sums[group] ?? '0', part)
    totals.columns[name] = {
      sum: addDecimals(known.sum, sum),
      empty: known.empty + empty,
      ...(byCurrency && { byCurrency: sums }),
    }
  }
  if (more.created !== undefined) totals.created = addCreated(totals.created, more.created)
}

function addCreated(known: CreatedTotals | undefined, more: CreatedTotals): CreatedTotals {
  if (known === undefined) return more
  const { oldest, newest } = known
  const months = new Map(Object.entries(known.months ?? {}))
  for (const [month, count] of Object.entries(more.months ?? {}))
    months.set(month, (months.get(month) ?? 0) + count)
  return {
    oldest: toExactInstant(more.oldest)! < toExactInstant(oldest)! ? more.oldest : oldest,
    newest: toExactInstant(more.newest)! > toExactInstant(newest)! ? more.newest : newest,
    ...(known.months && more.months && withMonths(months)),
  }
}

const withMonths = (months: ReadonlyMap<string, number>) =>
  months.size <= mostMonths && { months: Object.fromEntries(months) }

/** The column of a main table with the currency of its records, and of what belongs to them. */
export const currencyColumn = 'currency'

/** The group of a currency: itself, if it can be one, '' for none. A service that sends anything makes few groups. */
const toGroup = (currency = ''): string => (/^([A-Za-z]{3})?$/.test(currency) ? currency : 'other')

/** Adds up the decimal cells of records. */
export class TotalsCounter {
  readonly #columns: Map<string, { sums: Map<string, DecimalSum>; empty: number }>
  readonly #hasCurrency: boolean
  #oldest: { at: bigint; text: string } | undefined
  #newest: { at: bigint; text: string } | undefined
  readonly #months = new Map<string, number>()

  /** @param hasCurrency whether the records say their currency */
  constructor(tables: readonly Table[], { hasCurrency }: { hasCurrency: boolean }) {
    this.#columns = new Map(decimalColumns(tables).map(([name]) => [name, { sums: new Map(), empty: 0 }]))
    this.#hasCurrency = hasCurrency
  }

  /** Adds a record: its decimal cells, '' for an empty one, its currency, and when it was created. */
  add(
    cells: readonly { column: string; cell: string }[],
    currency: string | undefined,
    created: unknown,
  ): void {
    const group = this.#hasCurrency ? toGroup(currency) : ''
    for (const { column: name, cell } of cells) {
      const column = this.#columns.get(name)!
      if (cell === '') {
        column.empty++
        continue
      }
      let sum = column.sums.get(group)
      if (sum === undefined) column.sums.set(group, (sum = new DecimalSum()))
      sum.add(cell)
    }
    const at = toExactInstant(created)
    if (at === undefined) return
    const text = created as string
    if (this.#oldest === undefined || at < this.#oldest.at) this.#oldest = { at, text }
    if (this.#newest === undefined || at > this.#newest.at) this.#newest = { at, text }
    const month = text.slice(0, 7)
    this.#months.set(month, (this.#months.get(month) ?? 0) + 1)
  }

  /** The totals since the last call. */
  take(): Totals {
    const columns = Object.fromEntries(
      Array.from(this.#columns, ([name, column]) => {
        const sums = Array.from(column.sums, ([group, sum]) => [group, sum.toString()] as const)
        const total = {
          sum: sums.reduce((sum, [, part]) => addDecimals(sum, part), '0'),
          empty: column.empty,
          ...(this.#hasCurrency && { byCurrency: Object.fromEntries(sums) }),
        }
        Object.assign(column, { sums: new Map(), empty: 0 })
        return [name, total]
      }),
    )
    const [oldest, newest] = [this.#oldest?.text, this.#newest?.text]
    if (oldest === undefined || newest === undefined) return { columns }
    const created = { oldest, newest, ...withMonths(this.#months) }
    this.#oldest = this.#newest = undefined
    this.#months.clear()
    return { columns, created }
  }
}
