import type { Column, Kind, Table } from '../tables/table.ts'

/** The kinds of values in warehouse columns. `position` is a number of ours; numbers of the service are unbounded. */
export type ColumnKind = Kind | 'position'

/** A warehouse column and the part's cell that it is made from. */
export interface WarehouseColumn {
  name: string
  kind: ColumnKind
  cell: string
  note: string
}

/** A table as warehouses and Parquet have it. */
export interface WarehouseTable {
  table: Table
  columns: readonly WarehouseColumn[]
}

const asSent = '_as_sent'

/** The column with a cell's original text: a timestamp's own column holds the instant instead. */
export const textColumnOf = ({ name, kind }: Pick<Column, 'name' | 'kind'>) =>
  kind === 'timestamp' ? `${name}${asSent}` : name

/**
 * A table's columns in a warehouse. A timestamp has two, the instant and the service's text, because no
 * warehouse keeps the offset, which decides what day it was at the business.
 */
export function toWarehouseTable(table: Table): WarehouseTable {
  const columns = table.columns.flatMap((column): WarehouseColumn[] => {
    const { name, kind, source, note } = column
    const described = note === undefined ? source : `${source}: ${note}`
    const isPosition = table.key.indexOf(name) > 0
    const plain = { name, kind: isPosition ? 'position' : kind, cell: name, note: described } as const
    if (kind !== 'timestamp') return [plain]
    return [
      plain,
      { name: textColumnOf(column), kind: 'text', cell: name, note: `${source}, as the service sent it` },
    ]
  })
  return { table, columns }
}

/** The columns that a warehouse adds to each record. */
export const runColumns = [
  { name: '_run_id', kind: 'text', note: 'the run that wrote this row' },
  {
    name: '_read_at',
    kind: 'timestamp',
    note: 'the start of the latest read that saw the record (in a child table: of the read that wrote the row)',
  },
  {
    name: '_deleted_at',
    kind: 'timestamp',
    note: 'the start of the first read that proved the record gone; null while it is there',
  },
] as const satisfies { name: string; kind: ColumnKind; note: string }[]

/** The view of a table without deleted records. */
export const liveName = ({ name }: Pick<Table, 'name'>): string => `live_${name}`

/** The columns of a live view: those of its table except `_deleted_at`, which is always null there. */
export const liveColumns = (table: Table) =>
  [...toWarehouseTable(table).columns, ...runColumns].filter(({ name }) => name !== '_deleted_at')

/** A sentence about a table, for people who browse the warehouse. */
export const aboutTable = ({ name, resource, parent }: Table): string =>
  parent === undefined
    ? `The newest state of each of the ${resource}. Those that are gone have _deleted_at; ${liveName({ name })} leaves them out.`
    : `Rows of ${parent}, which the key leads back to. Those of records that are gone have _deleted_at; ${liveName({ name })} leaves them out.`

/** SQL that PostgreSQL and DuckDB interpret alike. */

/** Quotes a name as an identifier. */
export const quote = (name: string) => `"${name.replaceAll('"', '""')}"`

/** Quotes text as a literal; null as NULL. Neither database has backslash escapes in such literals. */
export const literal = (text: string | null) => (text === null ? 'null' : `'${text.replaceAll("'", "''")}'`)

export const instant = (text: string | null) => `${literal(text)}::timestamptz`

/** The session table that holds a table's rows until they are merged. */
export const stagedName = (table: string) => quote(`_staged_${table}`)

/** The column that holds a record's id, in a table or its child. */
export const idOf = ({ table }: Pick<WarehouseTable, 'table'>): string => quote(table.key[0]!)

/** SQL for the id in a staged row `s`, with its type in the warehouse. */
export const stagedIdOf = (
  { valueOf }: { valueOf: (column: WarehouseColumn) => string },
  { table, columns }: WarehouseTable,
): string => valueOf(columns.find(({ name }) => name === table.key[0])!)
