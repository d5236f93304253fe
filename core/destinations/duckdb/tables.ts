import { toOwner } from '../admission.ts'
import type { Publication } from '../destination.ts'
import { ChangedTableError } from '../errors.ts'
import {
  aboutTable,
  liveColumns,
  liveName,
  runColumns,
  type WarehouseColumn,
  type WarehouseTable,
} from '../layout.ts'
import { literal, quote } from '../sql.ts'
import type { DuckDb } from './open.ts'
import { types } from './rows.ts'

/** The types of the columns of each table and view. */
export type Tables = ReadonlyMap<string, ReadonlyMap<string, string>>

export async function describe(db: DuckDb): Promise<Tables> {
  const rows = await db.all(`select table_name, column_name, data_type from duckdb_columns()
    where database_name = current_database() and schema_name = 'main' and not internal
    order by table_name, column_index`)
  const tables = new Map<string, Map<string, string>>()
  for (const { table_name: table, column_name: column, data_type: type } of rows) {
    const columns = tables.get(table ?? '') ?? new Map<string, string>()
    tables.set(table ?? '', columns.set(column ?? '', type ?? ''))
  }
  return tables
}

/** Creates the warehouse's own tables and records its owner in them. */
export async function writeOwner(db: DuckDb, publication: Publication): Promise<void> {
  const owner = Object.values(toOwner(publication)).map(literal)
  await db.run(`create table _warehouse (workspace text not null, base_url text not null, mode text not null,
      created_at timestamptz not null);
    insert into _warehouse values (${owner.join(', ')}, current_timestamp);
    create table _columns (table_name text not null, column_name text not null, kind text not null,
      note text not null, primary key (table_name, column_name));
    create table _exports (run text not null, resource text not null, mode text not null, filters json not null,
      capped boolean not null, verdict text not null, reasons json not null, scope json, warnings json not null,
      read_at timestamptz not null, complete_through timestamptz, rows bigint not null, deleted bigint not null,
      marks_deletes boolean not null, published_at timestamptz not null, manifest json not null,
      primary key (run, resource));
    create table _rejected (run text not null, resource text not null, line text not null)`)
}

type TableColumn = Pick<WarehouseColumn, 'name' | 'kind' | 'note'>

/** The columns of a table in the warehouse. */
const columnsOf = ({ columns }: WarehouseTable): TableColumn[] => [...columns, ...runColumns]

/** The columns that this connector made, by table. */
export async function findOurs(db: DuckDb): Promise<ReadonlyMap<string, ReadonlySet<string>>> {
  const rows = await db.all('select table_name, column_name from _columns')
  return new Map(
    [...Map.groupBy(rows, (row) => row['table_name'] ?? '')].map(([table, columns]) => [
      table,
      new Set(columns.map((row) => row['column_name'] ?? '')),
    ]),
  )
}

/**
 * Refuses to write into a table or view that somebody else has made or changed.
 * @throws {ChangedTableError}
 */
export function checkTable(
  table: WarehouseTable,
  found: { tables: Tables; ours: ReadonlyMap<string, ReadonlySet<string>> },
): void {
  const { name } = table.table
  const strangersIn = (relation: string) =>
    [...(found.tables.get(relation)?.keys() ?? [])].filter(
      (column) => found.ours.get(relation)?.has(column) !== true,
    )
  const existing = found.tables.get(name)
  const strange = strangersIn(name)
  if (existing !== undefined && strange.length === existing.size)
    throw new ChangedTableError(
      `There is a table ${name} that this connector did not make. Nothing was written: rename it, or move the file away.`,
    )
  if (strange.length > 0)
    throw new ChangedTableError(
      `Someone added ${strange.length === 1 ? 'a column' : 'columns'} to ${name}: ${strange.join(', ')}. Rows are` +
        ' replaced whole, so what is in there would be lost. Nothing was written: move it to a table of your own.',
    )
  for (const { name: column, kind } of columnsOf(table)) {
    const type = existing?.get(column) ?? types[kind]
    if (type !== types[kind])
      throw new ChangedTableError(
        `The column ${column} of ${name} is ${type}, and has to be ${types[kind]} to hold what the service sends.` +
          ' Nothing was written: change it back.',
      )
  }
  const view = liveName(table.table)
  if (strangersIn(view).length > 0)
    throw new ChangedTableError(
      `There is ${view}, which this connector did not make. Nothing was written: rename it, or move the file away.`,
    )
}

/** Creates a table, or adds the columns that it lacks, with its live view and comments. */
export async function changeTable(db: DuckDb, table: WarehouseTable, tables: Tables): Promise<void> {
  const { name } = table.table
  const view = liveName(table.table)
  const existing = tables.get(name)
  const added = columnsOf(table).filter((column) => existing?.has(column.name) !== true)
  if (added.length === 0 && tables.has(view)) return
  const typed = added.map((column) => `${quote(column.name)} ${types[column.kind]}`)
  const live = new Set([
    ...[...(existing?.keys() ?? [])].filter((column) => column !== '_deleted_at'),
    ...liveColumns(table.table).map((column) => column.name),
  ])
  const statements = [
    ...(existing === undefined
      ? [`create table ${quote(name)} (${typed.join(', ')})`]
      : typed.map((column) => `alter table ${quote(name)} add column ${column}`)),
    `create or replace view ${quote(view)} as select ${[...live].map(quote).join(', ')} from ${quote(name)}
      where "_deleted_at" is null`,
    ...toNotes(name, added),
    ...toNotes(view, liveColumns(table.table)),
    ...added.map(
      (column) => `comment on column ${quote(name)}.${quote(column.name)} is ${literal(column.note)}`,
    ),
    `comment on table ${quote(name)} is ${literal(aboutTable(table.table))}`,
    `comment on view ${quote(view)} is ${literal(`${name} without the records that are gone`)}`,
  ]
  await db.run(statements.join(';\n'))
}

/** Records columns as ours. */
function toNotes(relation: string, columns: readonly TableColumn[]): string[] {
  if (columns.length === 0) return []
  const names = columns.map(({ name }) => literal(name))
  const rows = columns.map(
    ({ name, kind, note }) => `(${[relation, name, kind, note].map(literal).join(', ')})`,
  )
  return [
    `delete from _columns where table_name = ${literal(relation)} and column_name in (${names.join(', ')})`,
    `insert into _columns values ${rows.join(', ')}`,
  ]
}
