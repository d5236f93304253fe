import { hash } from 'node:crypto'
import { pipeline } from 'node:stream/promises'
import { type Client, DatabaseError } from 'pg'
import { from } from 'pg-copy-streams'
import type { Table } from '../../tables/table.ts'
import type { Publication } from '../destination.ts'
import { ChangedTableError, PartsDamagedError } from '../errors.ts'
import {
  type ColumnKind,
  idOf,
  literal,
  quote,
  stagedIdOf,
  stagedName,
  type WarehouseColumn,
  type WarehouseTable,
} from '../layout.ts'
import { checkRows, readParts } from '../parts.ts'
import {
  changeAll,
  checkChanged,
  type Database,
  type Found,
  type Row,
  type Tables,
  toTables,
} from '../warehouse/tables.ts'

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
const typeOf = ({ name, kind }: TableColumn): string => (name === '_extra' ? 'json' : types[kind])

/** A column of a key compares texts byte by byte: faster, and unaffected by upgrades of the system's locales. */
const keyCollation = (table: Table, { name, kind }: TableColumn): string =>
  table.key.includes(name) && kind === 'text' ? ' collate "C"' : ''

// An export of a whole list replaces every row. A page with room for the new version of each of its rows keeps them all,
// no index changes, and the next export finds the room of the old versions free again, without a vacuum.
const tableOptions = 'with (fillfactor = 45)'

/**
 * SQL for a column's value in a staged row `s`. Digits finer than a microsecond, from the 27th character on, are cut, not
 * rounded into the next day.
 */
export function valueOf({ cell, kind, name }: WarehouseColumn): string {
  const text = `s.${quote(cell)}`
  if (kind === 'timestamp')
    return `case when substr(${text}, 27, 1) between '0' and '9'
      then regexp_replace(${text}, '(\\.\\d{6})\\d+', '\\1') else ${text} end::timestamptz`
  return kind === 'text' ? text : `${text}::${typeOf({ name, kind })}`
}

export function toSession(client: Client, { schema, where }: Pick<Session, 'schema' | 'where'>): Session {
  const query = (text: string, values: readonly unknown[] = []) =>
    client.query<Row>({
      text,
      values: [...values],
      types: { getTypeParser: () => (value: unknown) => value },
    })
  const nameOf = (table: string) => `${quote(schema)}.${quote(table)}`
  const all: Session['all'] = async (sql, values) => (await query(sql, values)).rows
  const session: Session = {
    name: 'postgres',
    client,
    schema,
    where,
    // Of another schema or database, it is another one.
    certificates: `postgres/${schema}-${hash('sha256', where).slice(0, 10)}`,
    instead: 'name another schema (--input schema=<name>; of run publish, --schema <name>)',
    isShared: true,
    nameOf,
    run: async (sql, values) => (await query(sql, values)).rowCount ?? 0,
    all,
    typeOf,
    createTable: (table, columns) =>
      `create table ${nameOf(table.name)} (${columns
        .map((column) => `${quote(column.name)} ${typeOf(column)}${keyCollation(table, column)}`)
        .join(', ')}, primary key (${table.key.map(quote).join(', ')})) ${tableOptions}`,
    stage: async (publication) => ({
      rows: await stageTables(session, publication),
      facts: publication.facts,
    }),
    valueOf,
    lock: (publication) => lock(session, publication),
    replace: (publication, tables, found) => replace(session, { publication, tables, found }),
    async describe(): Promise<Tables> {
      const rows = await all(`select c.relname as table_name, a.attname as column_name,
          format_type(a.atttypid, a.atttypmod) as data_type
        from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = ${literal(schema)} and c.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0
          and not a.attisdropped order by c.relname, a.attnum`)
      return toTables(rows)
    },
  }
  return session
}

/** Creates the schema unless it is there; the first publication, which creates it too, is awaited. */
export async function createSchema(session: Session): Promise<void> {
  const { schema } = session
  // `if not exists` requires the right to create the schema even if it exists.
  const [found] = await session.all('select 1 as one from pg_namespace where nspname = $1', [schema])
  if (found !== undefined) return
  await excludeOthers(session)
  await session.run(`create schema if not exists ${quote(schema)}`)
}

const excludeOthers = (session: Session) =>
  session.run('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`connector ${session.schema}`])

async function lock(session: Session, { tables }: Pick<Publication, 'tables'>): Promise<void> {
  const { schema, where } = session
  await excludeOthers(session)
  await createSchema(session)
  const there = await session.all(
    `select c.relname as name, case when c.relkind not in ('r', 'p') then 'put something else in the place of'
      when c.relkind = 'r' and exists (select from pg_inherits where inhparent = c.oid) then 'let another table inherit from'
      end as change
    from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relname = any ($2)`,
    [schema, tables.map(({ name }) => name)],
  )
  for (const { name, change } of there)
    if (change !== null)
      throw new ChangedTableError(
        `Someone ${change} the table ${name} in ${where}, so it may show other rows than an export writes. Nothing was` +
          ` written: undo that, or ${session.instead}.`,
      )
  const names = there.map(({ name }) => session.nameOf(name ?? ''))
  if (names.length > 0) await session.run(`lock table ${names.join(', ')} in share row exclusive mode`)
}

async function replace(
  session: Session,
  {
    publication,
    tables,
    found,
  }: { publication: Publication; tables: readonly WarehouseTable[]; found: Found },
): Promise<void> {
  const [main, ...children] = tables as [WarehouseTable, ...WarehouseTable[]]
  for (const { table } of tables) await dropRefusingIndexes(session, table)
  for (const table of tables) await upsert(session, publication, table, found)
  // What this run has not written of these records is no longer theirs.
  for (const child of children)
    await changeAll(session, child.table, {
      how: `delete from ${session.nameOf(child.table.name)} t`,
      where: `t._run_id is distinct from ${literal(publication.run)} and exists (select from ${stagedName(main.table.name)} s
        where t.${idOf(child)} = ${stagedIdOf({ valueOf }, main)})`,
    })
  for (const { table } of tables) await createIndexes(session, table)
}

/**
 * Writes staged rows over those with the same key, also in the columns that this publication lacks.
 * @throws {ChangedTableError} a trigger of somebody's has kept a row out
 */
async function upsert(
  session: Session,
  { run, facts }: Publication,
  { table, columns }: WarehouseTable,
  found: Found,
): Promise<void> {
  const names = [...columns.map(({ name }) => name), '_run_id', '_read_at', '_deleted_at']
  const existing = [...(found.columns.get(table.name)?.keys() ?? [])]
  const replaced = [...new Set([...names, ...existing])]
    .filter((name) => !table.key.includes(name))
    .map(quote)
  const [staged] = await session.all(`select count(*) as rows from ${stagedName(table.name)}`)
  const written = await session.run(
    `insert into ${session.nameOf(table.name)} (${names.map(quote).join(', ')})
      select ${columns.map(valueOf).join(', ')}, $1::text, $2::timestamptz, null::timestamptz
      from ${stagedName(table.name)} s on conflict (${table.key.map(quote).join(', ')})
      do update set ${replaced.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    [run, facts.startedAt],
  )
  checkChanged(session, table, { expected: Number(staged?.['rows']), changed: written })
}

/** Copies the parts of each table into a session table of texts, and returns how many rows arrived. */
async function stageTables(
  session: Session,
  { tables, parts, signal }: Publication,
): Promise<Map<string, number>> {
  const staged = new Map<string, number>()
  for (const table of tables) {
    const own = parts.filter((part) => part.table === table.name)
    await createStaged(session, table)
    const rows = await copyInto(session, table, readParts(own, { signal, reusesBuffer: false }))
    checkRows(own, { table: table.name, rows, where: session.where })
    staged.set(table.name, rows)
  }
  return staged
}

/** Creates the session table that holds a table's cells as they are in CSV. */
export const createStaged = (session: Session, table: Table): Promise<number> =>
  session.run(`create temporary table ${stagedName(table.name)}
    (${table.columns.map((column) => `${quote(column.name)} text${keyCollation(table, column)}`).join(', ')}) on commit drop`)

/**
 * Copies CSV into the session table of a table: PostgreSQL reads our CSV and keeps NULL apart from empty text.
 * @throws {PartsDamagedError}
 */
export async function copyInto(
  { client }: Session,
  { name }: Pick<Table, 'name'>,
  csv: AsyncIterable<Buffer>,
  options = '',
): Promise<number> {
  const copy = client.query(from(`copy ${stagedName(name)} from stdin (format csv${options})`))
  await pipeline(csv, copy).catch((error: unknown) => {
    // PostgreSQL's message quotes the row: its contents must not leak.
    if (error instanceof DatabaseError && error.code?.startsWith('22') === true)
      throw new PartsDamagedError(
        `The parts of ${name} are no rows of that table (code ${error.code}). Run the export again.`,
      )
    throw error
  })
  return copy.rowCount
}

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
async function dropRefusingIndexes(session: Session, table: Table): Promise<void> {
  const drops = indexesOf(table).map(
    ({ column, index }) =>
      `if exists (select from ${stagedName(table.name)} where octet_length(${column}) > ${longestIndexed})
      then drop index if exists ${quote(session.schema)}.${index}; end if;`,
  )
  if (drops.length > 0) await session.run(`do $$ begin ${drops.join(' ')} end $$`)
}

/** Creates an index for each column with the id of another record, unless one of its values is too long. */
async function createIndexes(session: Session, table: Table): Promise<void> {
  for (const { column, index } of indexesOf(table))
    await session.run(`do $$ begin
      create index if not exists ${index} on ${session.nameOf(table.name)} (${column});
      exception when program_limit_exceeded then null; end $$`)
}
