import { textColumnOf } from '../../../core/destinations/layout.ts'
import type { Table } from '../../../core/tables/table.ts'
import type { SeenRow } from './contract.ts'

/** A table's own columns as expressions that give texts, under their own names: a timestamp as it was sent. */
export const asTexts = (table: Table, cast = 'varchar') =>
  table.columns.map((column) => `cast("${textColumnOf(column)}" as ${cast}) as "${column.name}"`).join(', ')

/** In the order of a table's key; positions are numbers. */
export const byKey = (table: Table) => table.key.map((name) => `t."${name}"`).join(', ')

export const toSeen = (row: Record<string, unknown>): SeenRow =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value === null || typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )

/** Decimals without the zeros that a column's scale adds, JSON without the spaces and the order of jsonb. */
export const withoutScale = (table: Table, rows: readonly SeenRow[] | undefined): SeenRow[] | undefined => {
  const decimals = table.columns.filter(({ kind }) => kind === 'decimal').map(({ name }) => name)
  return rows?.map((row) => {
    const plain = decimals.map((name) => [
      name,
      row[name]?.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '') ?? null,
    ])
    return { ...row, ...Object.fromEntries(plain) }
  })
}
