import { pipeline } from 'node:stream/promises'
import { DatabaseError, type Client } from 'pg'
import { from } from 'pg-copy-streams'
import { PartsDamagedError } from '../errors.ts'
import { readParts } from '../parts/read-parts.ts'
import { leastTypes, leastTypesQuery, type ColumnTypes } from '../warehouse/column-types.ts'
import { textColumnOf } from '../layout.ts'
import { instant, literal, quote, stagedName } from '../sql.ts'
import type { ResultRow, Staged, Staging } from '../warehouse/session.ts'
import { isTooLong, keyType, mostTrusted, postgresTypes as typeSystem, stagedType } from './column-types.ts'
import { createCellRepeater } from './repeat-cells.ts'

interface Copying extends Staging {
  client: Client
  schema: string
  signal: AbortSignal | undefined
}

/** A table that parts are copied into. */
interface Target {
  name: string
  types: ColumnTypes
  /** SQL that creates it, and SQL for when it is filled. */
  before: string
  after: string
}

/**
 * Copies parts into a session table, or into a new table itself: PostgreSQL reads our CSV and keeps NULL apart from empty
 * text. The types that the warehouse has, or would give a new column, nearly always hold every cell, so they
 * are tried first; cells that do not fit are copied again, to a session table, as types that hold anything.
 * @throws {PartsDamagedError}
 */
export async function stageCopy(copying: Copying): Promise<Staged> {
  const { client, table, fill } = copying
  const { name } = table.table
  const likely = fill === undefined ? toStaged(copying, copying.types) : toFilled(copying, fill)
  const widest = toStaged(copying)
  const first = await copyInto(likely, copying)
  const isFilled = fill !== undefined && first.misfit === undefined
  const copied = first.misfit === undefined ? first : await copyInto(widest, copying)
  // PostgreSQL's message quotes the row: its contents must not leak.
  if (copied.misfit !== undefined)
    throw new PartsDamagedError(
      `The parts of ${name} are no rows of that table (code ${copied.misfit}). Run the export again.`,
    )
  const { types } = first.misfit === undefined ? likely : widest
  const wide = table.columns.filter((column) => types.get(column.name) !== typeSystem.types[column.kind][0])
  const query = leastTypesQuery({ typeSystem, columns: wide, rows: stagedName(name) })
  const { rows } = query === undefined ? { rows: [] } : await client.query<ResultRow>(query)
  return {
    rows: copied.rows,
    types: leastTypes({ typeSystem, columns: table.columns, found: rows[0] }),
    isFilled,
  }
}

/** A session table. */
function toStaged({ table }: Staging, inWarehouse?: ColumnTypes): Target {
  const name = stagedName(table.table.name)
  const types = new Map(table.columns.map((column) => [column.name, stagedType(column, inWarehouse)]))
  const before = `create temporary table ${name} (${toColumns(table, types)}) on commit drop`
  return { name, types, before, after: '' }
}

/** The new table itself. What the run adds to each row are defaults while it is filled. */
function toFilled({ table, types, schema }: Copying, { run, readAt }: NonNullable<Staging['fill']>): Target {
  const name = `${quote(schema)}.${quote(table.table.name)}`
  const before = `create table ${name} (${toColumns(table, types)}) ${typeSystem.tableOptions};
    alter table ${name} alter "_run_id" set default ${literal(run)}, alter "_read_at" set default ${instant(readAt)}`
  const after = `alter table ${name} alter "_run_id" drop default, alter "_read_at" drop default;`
  return { name, types, before, after }
}

const toColumns = ({ table }: Staging['table'], types: ColumnTypes) =>
  [...types]
    .map(([name, type]) => `${quote(name)} ${table.key.includes(name) ? keyType(type) : type}`)
    .join(', ')

/**
 * Creates a table and copies parts into it, unless a row does not fit.
 * @returns how many rows, or PostgreSQL's code of a row that does not fit; there is no table then
 */
async function copyInto(
  { name, types, before, after }: Target,
  { client, table: { table }, parts, signal }: Copying,
): Promise<{ rows: number; misfit?: string | undefined }> {
  const timestamps = table.columns.filter(({ kind }) => kind === 'timestamp')
  const columns = [...table.columns.map(textColumnOf), ...timestamps.map((column) => column.name)]
  const repeater = createCellRepeater({
    columns: table.columns.length,
    repeated: timestamps.map((column) => table.columns.indexOf(column)),
  })
  await client.query(`savepoint copying; ${before}`)
  const copy = client.query(from(`copy ${name} (${columns.map(quote).join(', ')}) from stdin (format csv)`))
  const chunks = repeater.repeat(readParts(parts, { signal, reusesBuffer: true }))
  const misfit = await pipeline(chunks, copy)
    .then(() => (repeater.longestRow > mostTrusted ? findUnreadable(client, name, types) : undefined))
    .catch(toMisfit)
  await client.query(misfit === undefined ? `${after} release savepoint copying` : undo)
  return { rows: copy.rowCount, misfit }
}

const undo = 'rollback to savepoint copying; release savepoint copying'

/** Class 22: no value of the type; class 54: larger than PostgreSQL allows. */
function toMisfit(error: unknown): string {
  if (error instanceof DatabaseError && /^(22|54)/.test(error.code ?? '')) return error.code!
  throw error
}

/** Checks that PostgreSQL can return every copied jsonb: it writes out all digits of `1e99999`. */
async function findUnreadable(client: Client, rows: string, types: ColumnTypes): Promise<string | undefined> {
  const tests = [...types].flatMap(([name, type]) => (type === 'jsonb' ? [isTooLong(quote(name))] : []))
  if (tests.length === 0) return undefined
  const found = await client.query(`select from ${rows} where ${tests.join(' or ')} limit 1`)
  return found.rowCount === 0 ? undefined : '54000'
}
