import { ChangedTableError } from '../errors.ts'
import {
  aboutTable,
  liveColumns,
  liveName,
  runColumns,
  type ColumnKind,
  type WarehouseColumn,
  type WarehouseTable,
} from '../layout.ts'
import { literal, quote, stagedName } from '../sql.ts'
import type { Table } from '../../tables/table.ts'
import type { Session } from './session.ts'

/** The table that lists the columns that this connector made, for people and for later publications. */
export const columnsTable = '_columns'

/** The tables and views of a schema. */
export interface Found {
  /** The type of each column, by table or view and by name, in order. */
  columns: ReadonlyMap<string, ReadonlyMap<string, string>>
  /** Whether this connector made a column. */
  isOurs(table: string, column: string): boolean
}

export async function findTables(session: Session): Promise<Found> {
  const rows = await session.all(
    `select c.relname as table_name, a.attname as column_name, format_type(a.atttypid, a.atttypmod) as data_type
    from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0 and not a.attisdropped
    order by c.relname, a.attnum`,
    [session.schema],
  )
  const columns = new Map<string, Map<string, string>>()
  for (const { table_name: table, column_name: column, data_type: type } of rows) {
    const ofTable = columns.get(table ?? '') ?? new Map<string, string>()
    columns.set(table ?? '', ofTable.set(column ?? '', type ?? ''))
  }
  const registry = columns.has(columnsTable)
    ? await session.all(`select table_name, column_name from ${session.nameOf(columnsTable)}`)
    : []
  const toKey = (table: string | null | undefined, column: string | null | undefined) => `${table}\0${column}`
  const ours = new Set(registry.map((row) => toKey(row['table_name'], row['column_name'])))
  return { columns, isOurs: (table, column) => ours.has(toKey(table, column)) }
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

type TableColumn = Pick<WarehouseColumn, 'name' | 'kind' | 'note'>

/**
 * The type of a column, which never changes. Values that do not fit are in `_extra`, which is `json`: it keeps every text as
 * it is, also what jsonb rejects.
 */
export const typeOf = ({ name, kind }: Pick<TableColumn, 'name' | 'kind'>): string =>
  name === '_extra' ? 'json' : types[kind]

/** A column of a key compares texts byte by byte: faster, and unaffected by upgrades of the system's locales. */
export const keyCollation = (table: Table, { name, kind }: Pick<TableColumn, 'name' | 'kind'>): string =>
  table.key.includes(name) && kind === 'text' ? ' collate "C"' : ''

const columnsOf = ({ columns }: WarehouseTable): TableColumn[] => [...columns, ...runColumns]

/**
 * Checks that rows can be merged into a table and its view, if they exist, without loss.
 * @throws {ChangedTableError}
 */
export function checkTable(session: Session, found: Found, table: WarehouseTable): void {
  const { name } = table.table
  const foreign = (relation: string) =>
    [...(found.columns.get(relation)?.keys() ?? [])].filter((column) => !found.isOurs(relation, column))
  const existing = found.columns.get(name)
  const strange = foreign(name)
  if (strange.length > 0 && strange.length === existing?.size)
    throw new ChangedTableError(
      `There is a table ${session.nameOf(name)} that this connector did not make. Nothing was written: rename it, or name` +
        ' another schema.',
    )
  if (strange.length > 0)
    throw new ChangedTableError(
      `Someone added ${strange.length === 1 ? 'a column' : 'columns'} to ${session.nameOf(name)}: ${strange.join(', ')}. Rows are` +
        ' replaced whole, so what is in there would be lost. Nothing was written: move it to a table of your own.',
    )
  if (foreign(liveName(table.table)).length > 0)
    throw new ChangedTableError(
      `There is ${session.nameOf(liveName(table.table))}, which this connector did not make. Nothing was written: rename it, or` +
        ' name another schema.',
    )
  for (const column of columnsOf(table)) {
    const type = existing?.get(column.name)
    if (type !== undefined && type !== typeOf(column))
      throw new ChangedTableError(
        `The column ${column.name} of ${session.nameOf(name)} is ${type}, and has to be ${typeOf(column)}. Nothing was` +
          ' written: change it back, or name another schema.',
      )
  }
}

// An export of a whole list replaces every row. A page with room for the new version of each of its rows keeps them all,
// no index changes, and the next export finds the room of the old versions free again, without a vacuum.
const tableOptions = 'with (fillfactor = 45)'

/** Creates a table with its live view, or adds the columns that it lacks. */
export async function prepareTable(session: Session, found: Found, table: WarehouseTable): Promise<void> {
  const { name, key } = table.table
  const view = liveName(table.table)
  const existing = found.columns.get(name)
  const define = (column: TableColumn) =>
    `${quote(column.name)} ${typeOf(column)}${keyCollation(table.table, column)}`
  const added = columnsOf(table).filter((column) => existing?.has(column.name) !== true)
  if (added.length === 0 && found.columns.has(view)) return
  const statements =
    existing === undefined
      ? [
          `create table ${session.nameOf(name)} (${added.map(define).join(', ')}, primary key (${key.map(quote).join(', ')})) ${tableOptions}`,
        ]
      : added.map((column) => `alter table ${session.nameOf(name)} add column ${define(column)}`)
  // A view can gain columns only after its existing ones.
  const viewed = new Set([
    ...(found.columns.get(view)?.keys() ?? []),
    ...liveColumns(table.table).map((column) => column.name),
  ])
  await session.client.query(
    [
      ...statements,
      `create or replace view ${session.nameOf(view)} as select ${[...viewed].map(quote).join(', ')}
        from ${session.nameOf(name)} where "_deleted_at" is null`,
      ...added.map(
        (column) =>
          `comment on column ${session.nameOf(name)}.${quote(column.name)} is ${literal(column.note)}`,
      ),
      `comment on table ${session.nameOf(name)} is ${literal(aboutTable(table.table))}`,
      `comment on view ${session.nameOf(view)} is ${literal(`${name} without the records that are gone`)}`,
      register(session, name, columnsOf(table)),
      register(session, view, liveColumns(table.table)),
    ].join(';\n'),
  )
}

/** SQL that records columns of a table or view as ours. */
const register = (session: Session, table: string, columns: readonly TableColumn[]) =>
  `insert into ${session.nameOf(columnsTable)} values
    ${columns.map(({ name, kind, note }) => `(${[table, name, kind, note].map(literal).join(', ')})`).join(', ')}
    on conflict (table_name, column_name) do update set kind = excluded.kind, note = excluded.note`

/** The longest text, in bytes, that is sure to fit into an index. */
const longestIndexed = 2_000

/** The columns with the id of another record ("customer id", "plan id"), each with the name of its index. */
const indexesOf = (table: Table): { column: string; index: string }[] =>
  table.columns
    .filter(
      ({ name, kind, note = '' }) =>
        !table.key.includes(name) && kind !== 'json' && /(?<!\btype )\bid\b/.test(note),
    )
    .map(({ name }) => ({ column: quote(name), index: quote(`${table.name}_${name}`) }))

/** Drops the indexes that would refuse a staged row: a long value costs its index, never the rows. */
export async function dropRefusingIndexes(session: Session, table: Table): Promise<void> {
  const drops = indexesOf(table).map(
    ({ column, index }) =>
      `if exists (select from ${stagedName(table.name)} where octet_length(${column}) > ${longestIndexed})
      then drop index if exists ${quote(session.schema)}.${index}; end if;`,
  )
  if (drops.length > 0) await session.run(`do $$ begin ${drops.join(' ')} end $$`)
}

/** Creates an index for each column with the id of another record, unless one of its values is too long. */
export async function createIndexes(session: Session, table: Table): Promise<void> {
  for (const { column, index } of indexesOf(table))
    await session.run(`do $$ begin
      create index if not exists ${index} on ${session.nameOf(table.name)} (${column});
      exception when program_limit_exceeded then null; end $$`)
}
