import type { Table } from '../../tables/table.ts'
import type { Publication } from '../destination.ts'
import { ChangedTableError } from '../errors.ts'
import {
  aboutTable,
  liveColumns,
  liveName,
  runColumns,
  type WarehouseColumn,
  type WarehouseTable,
  literal,
  quote,
} from '../layout.ts'
import type { ReadFacts } from '../manifest.ts'
import type { WarehouseName } from '../names.ts'

/** A result row: text by column. */
export type Row = Record<string, string | null>

/** The type of each column, by table or view and by name, in order. */
export type Tables = ReadonlyMap<string, ReadonlyMap<string, string>>

type TableColumn = Pick<WarehouseColumn, 'name' | 'kind' | 'note'>

/** The rows of a publication in tables of the session. */
export interface Staged {
  /** How many rows each table brings. */
  rows: Map<string, number>
  /** With the values that only this warehouse cannot hold. */
  facts: ReadFacts
}

/**
 * The database of a warehouse. PostgreSQL and DuckDB take the same SQL for all that the connector keeps beside the records,
 * and for deletes; each stages and replaces records in SQL of its own.
 */
export interface Database {
  name: WarehouseName
  /** Describes the warehouse for people. */
  where: string
  /** The folder of its certificates, below the exports'. */
  certificates: string
  /** What people name instead of a warehouse that is refused, after "or": `move the file away`. */
  instead: string
  /** Whether others may change it while it is open. */
  isShared: boolean
  /** The qualified name of one of its tables or views. */
  nameOf(table: string): string
  /** Returns how many rows the statement changed; unspecified for several statements. */
  run(sql: string): Promise<number>
  all(sql: string): Promise<Row[]>
  describe(): Promise<Tables>
  typeOf(column: Pick<TableColumn, 'name' | 'kind'>): string
  /** SQL that creates a table. */
  createTable(table: Table, columns: readonly TableColumn[]): string
  /** Copies the parts into tables of the session. */
  stage(publication: Publication, tables: readonly WarehouseTable[]): Promise<Staged>
  /** SQL for a column's value in a staged row `s`. */
  valueOf(column: WarehouseColumn): string
  /**
   * Waits until no other session is publishing, and excludes others until the transaction ends, and anybody else who would
   * change rows of these tables.
   */
  lock(publication: Publication): Promise<void>
  /**
   * Replaces the staged records, the main table first, each as a whole with its child rows.
   * @param found the tables before the publication
   * @throws {PartsDamagedError} a row is staged twice
   */
  replace(publication: Publication, tables: readonly WarehouseTable[], found: Found): Promise<void>
}

/** Rows with `table_name`, `column_name` and `data_type`, by table. */
export const toTables = (rows: readonly Row[]): Tables =>
  new Map(
    [...Map.groupBy(rows, (row) => row['table_name'] ?? '')].map(([table, columns]) => [
      table,
      new Map(columns.map((row) => [row['column_name'] ?? '', row['data_type'] ?? ''])),
    ]),
  )

/** The table that lists the columns that this connector made, for people and for later publications. */
export const columnsTable = '_columns'

/** The tables and views of a warehouse. */
export interface Found {
  columns: Tables
  /** Whether this connector made a column. */
  isOurs(table: string, column: string): boolean
  /** The tables and views that lack a column that this connector made. */
  cut: ReadonlySet<string>
}

export async function findTables(db: Database): Promise<Found> {
  const columns = await db.describe()
  const registry = columns.has(columnsTable)
    ? await db.all(`select table_name, column_name from ${db.nameOf(columnsTable)}`)
    : []
  const toKey = (table: string | null | undefined, column: string | null | undefined) => `${table}\0${column}`
  const ours = new Set(registry.map((row) => toKey(row['table_name'], row['column_name'])))
  const cut = registry.flatMap(({ table_name: table, column_name: column }) =>
    columns.get(table ?? '')?.has(column ?? '') === true ? [] : (table ?? []),
  )
  return { columns, isOurs: (table, column) => ours.has(toKey(table, column)), cut: new Set(cut) }
}

const columnsOf = ({ columns }: WarehouseTable): TableColumn[] => [...columns, ...runColumns]

/**
 * Refuses to merge rows into a table or view that somebody else has made or changed.
 * @throws {ChangedTableError}
 */
export function checkTable(db: Database, found: Found, table: WarehouseTable): void {
  const { name } = table.table
  const { where, instead } = db
  const strangersIn = (relation: string) =>
    [...(found.columns.get(relation)?.keys() ?? [])].filter((column) => !found.isOurs(relation, column))
  const existing = found.columns.get(name)
  const strange = strangersIn(name)
  const refuse = (relation: string) =>
    new ChangedTableError(
      `There is ${relation} in ${where} that this connector did not make. Nothing was written: rename it, or ${instead}.`,
    )
  if (strange.length > 0 && strange.length === existing?.size) throw refuse(`a table ${name}`)
  if (strange.length > 0)
    throw new ChangedTableError(
      `Someone added ${strange.length === 1 ? 'a column' : 'columns'} to ${name} in ${where}: ${strange.join(', ')}. Rows are` +
        ' replaced whole, so what is in there would be lost. Nothing was written: move it to a table of your own.',
    )
  if (strangersIn(liveName(table.table)).length > 0) throw refuse(liveName(table.table))
  for (const column of columnsOf(table)) {
    const type = existing?.get(column.name)
    if (type !== undefined && type !== db.typeOf(column))
      throw new ChangedTableError(
        `The column ${column.name} of ${name} in ${where} is ${type}, and has to be ${db.typeOf(column)}. Nothing was` +
          ` written: change it back, or ${instead}.`,
      )
  }
}

/**
 * Checks that a statement has changed every row that it should: a trigger may leave some as they are, without an error.
 * @throws {ChangedTableError}
 */
export function checkChanged(
  { where }: Pick<Database, 'where'>,
  { name }: Pick<Table, 'name'>,
  { expected, changed }: { expected: number; changed: number },
): void {
  if (changed === expected) return
  throw new ChangedTableError(
    `A rule that someone put on ${name} of ${where} keeps changes out (${changed} of ${expected} rows changed). Nothing of` +
      ' this export was published: remove it.',
  )
}

/**
 * Deletes or changes all rows of a condition.
 * @param how the statement up to the condition
 * @throws {ChangedTableError} a trigger or a rule of somebody's leaves some as they are
 */
export async function changeAll(
  db: Database,
  table: Pick<Table, 'name'>,
  { how, where }: { how: string; where: string },
): Promise<void> {
  const [counted = {}] = await db.all(
    `select count(*) as rows from ${db.nameOf(table.name)} t where ${where}`,
  )
  const expected = Number(counted['rows'])
  if (expected === 0) return
  checkChanged(db, table, { expected, changed: await db.run(`${how} where ${where}`) })
}

/** Creates a table with its live view, or adds the columns that it lacks. */
export async function prepareTable(db: Database, found: Found, table: WarehouseTable): Promise<void> {
  const { name } = table.table
  const view = liveName(table.table)
  const existing = found.columns.get(name)
  const added = columnsOf(table).filter((column) => existing?.has(column.name) !== true)
  if (added.length === 0 && found.columns.has(view)) return
  const target = db.nameOf(name)
  // A view can gain columns only after its existing ones.
  const viewed = new Set([
    ...(found.columns.get(view)?.keys() ?? []),
    ...liveColumns(table.table).map((column) => column.name),
  ])
  const statements = [
    ...(existing === undefined
      ? [db.createTable(table.table, added)]
      : added.map((column) => `alter table ${target} add column ${quote(column.name)} ${db.typeOf(column)}`)),
    `create or replace view ${db.nameOf(view)} as select ${[...viewed].map(quote).join(', ')}
      from ${target} where "_deleted_at" is null`,
    ...added.map((column) => `comment on column ${target}.${quote(column.name)} is ${literal(column.note)}`),
    `comment on table ${target} is ${literal(aboutTable(table.table))}`,
    `comment on view ${db.nameOf(view)} is ${literal(`${name} without the records that are gone`)}`,
    register(db, name, columnsOf(table)),
    register(db, view, liveColumns(table.table)),
  ]
  await db.run(statements.join(';\n'))
}

/** SQL that records columns of a table or view as ours. */
const register = (db: Database, relation: string, columns: readonly TableColumn[]) =>
  `insert into ${db.nameOf(columnsTable)} values
    ${columns.map(({ name, kind, note }) => `(${[relation, name, kind, note].map(literal).join(', ')})`).join(', ')}
    on conflict (table_name, column_name) do update set kind = excluded.kind, note = excluded.note`
