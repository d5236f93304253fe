import type { Publication } from '../destination.ts'
import { PartsDamagedError, rowsMissing } from '../errors.ts'
import { type WarehouseColumn, type WarehouseTable, quote, stagedName } from '../layout.ts'
import type { Merged, Merging } from '../warehouse/publish.ts'
import type { Found } from '../warehouse/tables.ts'
import { type Session, typeOf, keyCollation } from './session.ts'
import { pipeline } from 'node:stream/promises'
import { DatabaseError } from 'pg'
import { from } from 'pg-copy-streams'
import { checkRows, readParts } from '../parts/read-parts.ts'
import type { Table } from '../../tables/table.ts'

interface Merge {
  session: Session
  publication: Publication
  /** The tables before the publication. */
  found: Found
  /** How many rows are staged, by table. */
  staged: ReadonlyMap<string, number>
}

/** The column that holds a record's id, in a table or its child. */
const idOf = ({ table }: WarehouseTable) => quote(table.key[0]!)

const columnOf = ({ columns }: WarehouseTable, name: string) =>
  columns.find((column) => column.name === name)!

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

const idIn = (table: WarehouseTable) => valueOf(columnOf(table, table.table.key[0]!))

const hasUpdated = ({ columns }: WarehouseTable) =>
  columns.some(({ name, kind }) => name === 'updated' && kind === 'timestamp')

/** How PostgreSQL stages, locks and merges. */
export const toMerging = (session: Session, publication: Publication): Merging => ({
  stage: async () => ({ rows: await stageTables(session, publication), facts: publication.facts }),
  lock: () => lock(session, publication),
  async merge(tables, { rows: staged }, found) {
    for (const { table } of tables) await dropRefusingIndexes(session, table)
    const merged = await mergeRecords({ session, publication, found, staged }, tables)
    for (const { table } of tables) await createIndexes(session, table)
    return merged
  },
})

async function lock(session: Session, { tables }: Pick<Publication, 'tables'>): Promise<void> {
  const { schema } = session
  await session.run('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`billing-connector ${schema}`])
  // `if not exists` requires the right to create the schema even if it exists.
  const [found] = await session.all('select 1 as one from pg_namespace where nspname = $1', [schema])
  if (found === undefined) await session.run(`create schema ${quote(schema)}`)
  const there = await session.all(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relkind in ('r', 'p') and c.relname = any ($2)`,
    [schema, tables.map(({ name }) => name)],
  )
  const names = there.map(({ name }) => session.nameOf(name ?? ''))
  if (names.length > 0) await session.run(`lock table ${names.join(', ')} in share row exclusive mode`)
}

/**
 * Merges staged records. No stored record was read later: see `checkOrder`.
 * @throws {PartsDamagedError} a row is staged twice
 */
async function mergeRecords(merge: Merge, tables: readonly WarehouseTable[]): Promise<Merged> {
  const { session, publication, staged } = merge
  const [main, ...children] = tables as [WarehouseTable, ...WarehouseTable[]]
  const target = session.nameOf(main.table.name)
  const source = `${stagedName(main.table.name)} s`
  const rows = staged.get(main.table.name)!
  const changes = await countChanges(merge, main)
  const written = await upsert(
    merge,
    main,
    `from ${source}`,
    hasUpdated(main) ? 'where (excluded."updated" < t."updated") is not true' : '',
  )
  const kept = new Map([[main.table.name, rows - written]])
  if (written < rows)
    await session.run(
      `update ${target} t set "_read_at" = $1, "_deleted_at" = null from ${source} where t.${idOf(main)} = ${idIn(main)} and t."_run_id" is distinct from $2`,
      [publication.facts.startedAt, publication.run],
    )
  for (const child of children) {
    const left = written === rows ? 0 : await countKept(merge, main, child)
    const replaced = await replaceChildren(merge, main, child, written < rows)
    const read = staged.get(child.table.name)!
    if (replaced + left !== read)
      throw rowsMissing({
        table: child.table.name,
        read,
        arrived: replaced + left,
        where: session.where,
      })
    kept.set(child.table.name, left)
  }
  return { kept, changes }
}

/** Counts the staged records that are new, and those with a later `updated` than the stored one. */
async function countChanges(
  { session, found, staged }: Merge,
  main: WarehouseTable,
): Promise<Merged['changes']> {
  const { name } = main.table
  if (!found.columns.has(name)) return { new: staged.get(name)!, changed: 0 }
  const isChanged = hasUpdated(main) ? `${valueOf(columnOf(main, 'updated'))} > t."updated"` : 'false'
  const [counted] = await session.all(`select count(*) filter (where t.${idOf(main)} is null) as new,
      count(*) filter (where ${isChanged}) as changed
    from ${stagedName(name)} s left join ${session.nameOf(name)} t on t.${idOf(main)} = ${idIn(main)}`)
  return { new: Number(counted?.['new']), changed: Number(counted?.['changed']) }
}

/** Writes staged rows over those with the same key, also in the columns that this publication lacks. */
async function upsert(
  { session, publication, found }: Merge,
  { table, columns }: WarehouseTable,
  from: string,
  where = '',
): Promise<number> {
  const names = [...columns.map(({ name }) => name), '_run_id', '_read_at', '_deleted_at']
  const existing = [...(found.columns.get(table.name)?.keys() ?? [])]
  const replaced = [...new Set([...names, ...existing])]
    .filter((name) => !table.key.includes(name))
    .map(quote)
  return session.run(
    `insert into ${session.nameOf(table.name)} as t (${names.map(quote).join(', ')})
      select ${columns.map(valueOf).join(', ')}, $1::text, $2::timestamptz, null::timestamptz ${from}
      on conflict (${table.key.map(quote).join(', ')})
      do update set ${replaced.map((name) => `${name} = excluded.${name}`).join(', ')} ${where}`,
    [publication.run, publication.facts.startedAt],
  )
}

/** Replaces the child rows of the records that were written: what this run has not written is no longer theirs. */
async function replaceChildren(
  merge: Merge,
  main: WarehouseTable,
  child: WarehouseTable,
  hasKept: boolean,
): Promise<number> {
  const { session, publication } = merge
  const isWritten = (id: string) =>
    hasKept
      ? `exists (select from ${session.nameOf(main.table.name)} m where m.${idOf(main)} = ${id} and m."_run_id" = $1)`
      : 'true'
  const written = await upsert(
    merge,
    child,
    `from ${stagedName(child.table.name)} s where ${isWritten(idIn(child))}`,
  )
  await session.run(
    `delete from ${session.nameOf(child.table.name)} t using ${stagedName(main.table.name)} s
      where t.${idOf(child)} = ${idIn(main)} and t."_run_id" is distinct from $1 and ${isWritten(`t.${idOf(child)}`)}`,
    [publication.run],
  )
  return written
}

/** Counts the staged rows of a child table whose records were left as they are. */
async function countKept(
  { session, publication }: Merge,
  main: WarehouseTable,
  child: WarehouseTable,
): Promise<number> {
  const [counted] = await session.all(
    `select count(*) as rows from ${stagedName(child.table.name)} s
      join ${session.nameOf(main.table.name)} m on m.${idOf(main)} = ${idIn(child)} and m."_run_id" is distinct from $1`,
    [publication.run],
  )
  return Number(counted?.['rows'])
}

/** Copies the parts of each table into a session table of texts, and returns how many rows arrived. */
export async function stageTables(
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
