import type { Client } from 'pg'
import type { Table } from '../../tables/table.ts'
import { type ColumnKind, type WarehouseColumn, literal, quote } from '../layout.ts'
import { type Database, type Row, type Tables, toTables } from '../warehouse/tables.ts'

/** One transaction over the schema of a warehouse. Nothing of it is visible outside until it commits. */
export interface Session extends Database {
  client: Client
  schema: string
  run(sql: string, values?: readonly unknown[]): Promise<number>
  all(sql: string, values?: readonly unknown[]): Promise<Row[]>
}

const types: Readonly<Record<ColumnKind, string>> = {
  text: 'text',
  integer: 'bigint',
  position: 'integer',
  decimal: 'numeric',
  boolean: 'boolean',
  date: 'date',
  timestamp: 'timestamp with time zone',
  json: 'jsonb',
}

type TableColumn = Pick<WarehouseColumn, 'name' | 'kind'>

/**
 * The type of a column, which never changes. Values that do not fit are in `_extra`, which is `json`: it keeps every text as
 * it is, also what jsonb rejects.
 */
export const typeOf = ({ name, kind }: TableColumn): string => (name === '_extra' ? 'json' : types[kind])

/** A column of a key compares texts byte by byte: faster, and unaffected by upgrades of the system's locales. */
export const keyCollation = (table: Table, { name, kind }: TableColumn): string =>
  table.key.includes(name) && kind === 'text' ? ' collate "C"' : ''

// An export of a whole list replaces every row. A page with room for the new version of each of its rows keeps them all,
// no index changes, and the next export finds the room of the old versions free again, without a vacuum.
const tableOptions = 'with (fillfactor = 45)'

export function toSession(client: Client, { schema, where }: Pick<Session, 'schema' | 'where'>): Session {
  const query = (text: string, values: readonly unknown[] = []) =>
    client.query<Row>({
      text,
      values: [...values],
      types: { getTypeParser: () => (value: unknown) => value },
    })
  const nameOf = (table: string) => `${quote(schema)}.${quote(table)}`
  const all: Session['all'] = async (sql, values) => (await query(sql, values)).rows
  return {
    name: 'postgres',
    client,
    schema,
    where,
    instead: 'name another schema',
    nameOf,
    run: async (sql, values) => (await query(sql, values)).rowCount ?? 0,
    all,
    typeOf,
    createTable: (table, columns) =>
      `create table ${nameOf(table.name)} (${columns
        .map((column) => `${quote(column.name)} ${typeOf(column)}${keyCollation(table, column)}`)
        .join(', ')}, primary key (${table.key.map(quote).join(', ')})) ${tableOptions}`,
    rowId: 'ctid',
    microseconds: (column) => `(date_part('epoch', ${column}) * 1000000)::bigint`,
    async describe(): Promise<Tables> {
      const rows = await all(`select c.relname as table_name, a.attname as column_name,
          format_type(a.atttypid, a.atttypmod) as data_type
        from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = ${literal(schema)} and c.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0
          and not a.attisdropped order by c.relname, a.attnum`)
      return toTables(rows)
    },
  }
}
