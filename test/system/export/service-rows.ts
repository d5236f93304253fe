import { toPlainJson } from '../../core/destinations/plain-value.ts'
import type { Column, Table } from '../../../core/tables/table.ts'
import type { World } from './world.ts'

export type Cells = Record<string, string | null>
type Fields = Record<string, unknown>

/**
 * What the service itself stores of a resource, as the texts a warehouse should hold: each table's rows by key. Made
 * from the columns' places in a record, without the code that encodes rows.
 */
export function rowsOfService(world: World, tables: readonly Table[]): Map<string, Map<string, Cells>> {
  const { control } = world.sandbox
  const resource = 'subscriptions' as const
  const records = control.ids({ resource }).map((id) => control.get({ resource, id }) as Fields)
  return new Map(
    tables.map((table) => [
      table.name,
      new Map(
        records.flatMap((record) => rowsOf({ tables, table, record })).map((row) => [keyOf(table, row), row]),
      ),
    ]),
  )
}

export const keyOf = ({ key }: Table, row: Cells) => key.map((name) => row[name]).join(',')

/** A table hangs on an array in a record, or on one in each item of an array: its own place is its last key's. */
function rowsOf(of: { tables: readonly Table[]; table: Table; record: Fields }): Cells[] {
  const { tables, table, record } = of
  const [first = '', ...positions] = table.key
  const columns = new Map(table.columns.map((column) => [column.name, column]))
  const arrays = positions.map((name) => columns.get(name)!.source.split('.').slice(1))
  let items: { keys: Cells; item: Fields }[] = [{ keys: { [first]: String(record['id']) }, item: record }]
  for (const [depth, path] of arrays.entries()) {
    const name = path.at(-1) ?? ''
    items = items.flatMap(({ keys, item }) =>
      ((item[name] ?? []) as Fields[]).map((child, at) => ({
        keys: { ...keys, [positions[depth]!]: String(at + 1) },
        item: child,
      })),
    )
  }
  const depth = 1 + arrays.length
  const extra = table.columns.find(({ name }) => name === '_extra')!
  const known = tables
    .flatMap(({ columns }) => columns.map(({ source }) => source))
    .filter((source) => source.startsWith(`${extra.source}.`))
    .map((source) => source.split('.')[depth])
  return items.map(({ keys, item }) => ({
    ...Object.fromEntries(table.columns.map((column) => [column.name, cellOf(column, item, depth)])),
    _extra: unknownOf(item, known),
    ...keys,
  }))
}

/** What no column knows, as JSON. */
function unknownOf(item: Fields, known: readonly (string | undefined)[]): string | null {
  const unknown = Object.entries(item).filter(([name]) => !known.includes(name))
  return unknown.length === 0 ? null : JSON.stringify(Object.fromEntries(unknown))
}

function cellOf(column: Column, item: Fields, depth: number): string | null {
  let value: unknown = item
  for (const key of column.source.split('.').slice(depth)) value = (value as Fields | null | undefined)?.[key]
  if (value === null || value === undefined) return null
  return comparable(column, typeof value === 'string' ? value : JSON.stringify(value))
}

/** Decimals without the zeros that a column's scale adds or that were sent; JSON in one notation. */
export function comparable({ kind }: Column, text: string | null): string | null {
  if (kind === 'json' && text !== null) return toPlainJson(text)
  return kind === 'decimal' && text !== null ? text.replace(/(\.\d*?)0+$/, '$1').replace(/\.$/, '') : text
}
