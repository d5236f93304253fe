import { existsSync } from 'node:fs'
import { link } from 'node:fs/promises'
import { join } from 'node:path'
import { currencyColumn } from '../../tables/totals.ts'
import { syncPath, temporaryName } from '../../storage/durable.ts'
import { InvalidInput } from '../../runs/errors.ts'
import { isSystemError } from '../../storage/system-errors.ts'
import { type DuckDb, memoryLimits, toDuckDbError, withDuckDb } from '../duckdb/open.ts'
import { toDecimal, toPartsError } from '../duckdb/rows.ts'
import { instant, literal, quote } from '../layout.ts'
import type { Manifest, PublishedTable } from '../manifest.ts'
import { readWithin, selectCells, toValue } from './cells.ts'
import { writeGuarded } from './csv.ts'
import {
  type Apart,
  decimalsOf,
  findDoubts,
  haveCurrency,
  refuseSides,
  shareColumns,
  type SharedTable,
  type Sides,
} from './comparable.ts'
import { type Amount, balance, type Sum, UnbalancedError } from './sums.ts'

/** What happened to a list between two exports. */
export interface Changes {
  /** Whether both exports are proven reads of the whole list. */
  verdict: 'proven' | 'unproven'
  /** Which conclusions do not hold, one sentence each. */
  reasons: string[]
  records: Record<'opening' | 'new' | 'gone' | 'closing' | 'changed' | 'unchanged', number>
  /** Of each decimal column and currency. */
  sums: Sum[]
  apart: Apart[]
}

interface Side {
  folder: string
  manifest: Manifest
}

/**
 * Compares two exports of one list, whose files are as their manifests say, and writes what changed to a file. DuckDB holds a
 * fingerprint of each record (with its child rows) and the rows of the records that differ, on disk if they are many. The sums
 * of the exports are those that their manifests had from the read, so the balance also proves the comparison.
 * @throws {InvalidInput | UnbalancedError}
 */
export async function compareExports(
  of: Sides<Side> & { out: string; signal?: AbortSignal | undefined },
): Promise<Changes> {
  const { older, newer, out, signal } = of
  const refused = refuseSides({ older: older.manifest, newer: newer.manifest })
  if (refused !== undefined) throw new InvalidInput(refused)
  const isThere = () =>
    new InvalidInput(`There is ${out} already: remove it, or name another file with --out.`)
  if (existsSync(out)) throw isThere()
  const beside = temporaryName(out)
  try {
    return await readWithin(memoryLimits.compare, ({ memory, size }) =>
      withDuckDb({ path: undefined, memory, beside, signal }, async (db) => {
        const { changes, written } = await compare(db, of, { beside, size })
        await syncPath(written)
        signal?.throwIfAborted()
        await link(written, out).catch((error: unknown) => {
          throw isSystemError(error, 'EEXIST') ? isThere() : error
        })
        return changes
      }),
    )
  } catch (error) {
    signal?.throwIfAborted()
    throw toDuckDbError(toPartsError(error, older.manifest.resource), {
      path: out,
      undone: 'Nothing was written',
      ofMemory:
        'DuckDB has too little memory to compare these exports. Compare two exports that are closer in time; if one field' +
        ' is very long, compare exports without it (--exclude).',
    })
  }
}

const sides = ['older', 'newer'] as const
type SideName = (typeof sides)[number]

/** A comparison in progress. */
interface Comparing extends Sides<Side> {
  db: DuckDb
  /** The folder of what is written on the way. */
  beside: string
  size: number
  tables: SharedTable[]
  hasCurrency: boolean
}

/** Compares, and writes the changes into a file beside. */
async function compare(
  db: DuckDb,
  { older, newer }: Sides<Side>,
  at: Pick<Comparing, 'beside' | 'size'>,
): Promise<{ changes: Changes; written: string }> {
  const manifests = { older: older.manifest, newer: newer.manifest }
  const { tables, apart } = shareColumns(manifests)
  const of = { db, older, newer, ...at, tables, hasCurrency: haveCurrency({ tables }, older.manifest) }
  await findChanged(of)
  const rows = await db.all('select change, count(*) as records from changes group by change')
  const count = (change: string) => Number(rows.find((row) => row['change'] === change)?.['records'] ?? 0)
  const pieces = Math.max(1, Math.ceil(count('changed') / changedAtOnce))
  for (const side of sides) for (const table of tables) await keepChanged(of, { side, table, pieces })
  const [opening, closing] = [rowsOf(older), rowsOf(newer)]
  const records = { opening, new: count('new'), gone: count('gone'), closing, changed: count('changed') }
  const unchanged = opening - records.gone - records.changed
  if (unchanged !== closing - records.new - records.changed)
    throw new UnbalancedError('The records of the two exports do not balance.')
  const reasons = findDoubts(manifests, await countUncovered(of))
  const changes: Changes = {
    verdict: reasons.length === 0 ? 'proven' : 'unproven',
    reasons,
    records: { ...records, unchanged },
    sums: await sumUp(of),
    apart,
  }
  return { changes, written: await write(of, pieces) }
}

const tableOf = ({ manifest }: Side, { name }: SharedTable): PublishedTable =>
  manifest.tables.find((table) => table.name === name)!

function cellsOf(of: Comparing, side: SideName, shared: SharedTable): Promise<string> {
  const table = tableOf(of[side], shared)
  const plain = join(of.beside, `${side}-${table.name}.csv`)
  return selectCells({ ...of[side], table, plain, size: of.size })
}

/** Finds the records that are new, gone or changed, by an MD5 sum of all that is compared of each. */
async function findChanged(of: Comparing): Promise<void> {
  const { db, tables } = of
  const rows = sides.flatMap((side) => of[side].manifest.tables.map(({ rows }) => rows))
  // DuckDB would need memory for all records at once.
  const pieces = Math.ceil(rows.reduce((sum, one) => sum + one, 1) / rowsAtOnce)
  await db.run(
    'create table prints (side varchar, id uhugeint, is_record boolean, piece ubigint, currency varchar, print uhugeint)',
  )
  for (const side of sides)
    for (const [at, table] of tables.entries()) {
      const values = table.columns.map((column) => toValue(column, quote(column.name)))
      const row = [literal(table.name), ...table.key.map(quote), ...values]
      const found =
        await db.run(`insert into prints select ${literal(side)} as side, ${idOf(table)} as id, ${at === 0} as is_record,
        hash(${quote(table.key[0]!)}) % ${pieces} as piece,
        ${at === 0 && of.hasCurrency ? toGroup : "''"} as currency,
        md5_number(cast(to_json([${row.join(', ')}]) as varchar)) as print from ${await cellsOf(of, side, table)}`)
      const { rows: published } = tableOf(of[side], table)
      if (found !== published)
        throw new UnbalancedError(`${table.name} of the ${side} export has ${found} rows, not ${published}.`)
    }
  await db.run('create table changes (id uhugeint, older varchar, newer varchar, change varchar)')
  for (let piece = 0; piece < pieces; piece++) {
    await db.run(`create or replace table piece as select * from prints where piece = ${piece}`)
    // Equal rows of both sides leave nothing.
    await db.run(`insert into changes select id, max(case when side = 'older' then currency end),
      max(case when side = 'newer' then currency end),
      case when not bool_or(is_record and side = 'older') then 'new'
        when not bool_or(is_record and side = 'newer') then 'gone' else 'changed' end
      from piece group by id having bit_xor(print) <> 0 and bool_or(is_record)`)
  }
  await db.run('drop table prints')
}

/** Keeps the rows of the records that are new, gone or changed. */
async function keepChanged(
  of: Comparing,
  { side, table, pieces }: { side: SideName; table: SharedTable; pieces: number },
): Promise<void> {
  await of.db.run(`create table ${keptName(side, table)} as select c.*, k.change as _change,
    k.${side} as _currency, hash(k.id) % ${pieces} as _piece from ${await cellsOf(of, side, table)} c
    join changes k on ${idOf(table, 'c.')} = k.id`)
}

/** How many records are gone that the newer export need not have seen, as far as the list says when they were created. */
async function countUncovered({ db, tables, older, newer }: Comparing): Promise<number> {
  const { completeThrough } = newer.manifest
  const [main] = tables
  const hasCreated = tableOf(older, main!).columns.some(({ name }) => name === 'created')
  const isCovered =
    !hasCreated || completeThrough === null
      ? 'false'
      : `coalesce(try_cast(created as timestamptz) <= ${instant(completeThrough)}, false)`
  const [row] = await db.all(
    `select count(*) as records from ${keptName('older', main!)} where _change = 'gone' and not ${isCovered}`,
  )
  return Number(row?.['records'])
}

async function sumUp({ db, older, newer, hasCurrency, ...of }: Comparing): Promise<Sum[]> {
  const tables = of.tables.filter((table) => decimalsOf(table).length > 0)
  const columns = tables.flatMap((table) => decimalsOf(table).map(({ name }) => `${table.name}.${name}`))
  return columns.length === 0
    ? []
    : await balance({
        manifests: { older: older.manifest, newer: newer.manifest },
        columns,
        hasCurrency,
        amounts: amountsOf(db, tables),
      })
}

/** The amounts of the changed records: DuckDB adds up those that its type holds, and the others come one by one. */
async function* amountsOf(db: DuckDb, tables: readonly SharedTable[]) {
  const queries = tables.flatMap((table) => {
    const cells = decimalsOf(table).map(
      ({ name }) => `{name: ${literal(`${table.name}.${name}`)}, cell: ${quote(name)}}`,
    )
    return sides.map(
      (side) => `select ${literal(side)} as side, _change, _currency, unnest([${cells.join(', ')}]) as amount
        from ${keptName(side, table)}`,
    )
  })
  await db.run(`create table amounts as select row_number() over () as place, * from (
    select side, _change as change, _currency as currency, amount.name as "column",
      case when value is null then amount.cell end as misfit, sum(value) as total, count(*) as times
    from (select *, ${toDecimal('amount.cell')} as value from (${queries.join(' union all ')}))
    where amount.cell is not null group by all)`)
  // Without the zeros that the type adds.
  const amount = "coalesce(misfit, regexp_replace(cast(total as varchar), '[.]?0+$', ''))"
  for (let place = 0; ; place += readAtOnce) {
    const rows = await db.all(`select side, change, currency, "column", ${amount} as amount,
      case when misfit is null then 1 else times end as times
      from amounts where place > ${place} and place <= ${place + readAtOnce}`)
    for (const { times, ...row } of rows) yield { ...row, times: BigInt(times!) } as Amount
    if (rows.length < readAtOnce) return
  }
}

/** Writes a line for each record that is new or gone, and for each value that changed; returns the file's path. */
async function write({ db, beside, tables }: Comparing, pieces: number): Promise<string> {
  const plain = join(beside, 'plain.csv')
  const path = join(beside, 'changes.csv')
  const [main] = tables
  await db.run(`create table lines (change varchar, id varchar, place integer, "table" varchar,
    positions bigint[], value struct(nth integer, field varchar, "before" varchar, "after" varchar, differs boolean))`)
  for (const side of sides)
    await db.run(`insert into lines select _change, ${quote(main!.key[0]!)}, -1, null, null, null
      from ${keptName(side, main!)} where _change <> 'changed'`)
  for (const [at, table] of tables.entries())
    for (let piece = 0; piece < pieces; piece++)
      await db.run(`insert into lines ${toLines(table, at, piece)}`)
  await db.run(`copy (select change as _change, id, "table",
      nullif(array_to_string(positions, ','), '') as position, value.field, value.before, value.after
    from lines order by id, place, positions, value.nth) to ${literal(plain)} (format csv, header true)`)
  await writeGuarded(plain, path)
  return path
}

const readAtOnce = 1_000

/** A line for each value of a table that changed. */
function toLines(table: SharedTable, at: number, piece: number): string {
  const [id, ...positions] = table.key.map((key) => `coalesce(o.${quote(key)}, n.${quote(key)})`)
  const fields = [...table.key.slice(1).map((name) => ({ name, kind: 'text' })), ...table.columns].map(
    (column, index) => {
      const cells = sides.map((side) => `${side[0]}.${quote(column.name)}`)
      const [before, after] = cells.map((cell) => toValue(column, cell))
      return `{nth: ${index}, field: ${literal(column.name)}, before: ${cells[0]}, after: ${cells[1]},
        differs: ${before} is distinct from ${after}}`
    },
  )
  const kept = (side: SideName) =>
    `(select * from ${keptName(side, table)} where _change = 'changed' and _piece = ${piece}) ${side[0]}`
  const isSame = table.key.map((key) => `o.${quote(key)} = n.${quote(key)}`).join(' and ')
  return `select 'changed', ${id}, ${at}, ${literal(table.name)},
    [${positions.map((one) => `cast(${one} as bigint)`).join(', ')}]::bigint[],
    unnest(list_filter([${fields.join(', ')}], lambda one: one.differs))
    from ${kept('older')} full join ${kept('newer')} on ${isSame}`
}

/** The changed records whose values are compared at a time. */
const changedAtOnce = 20_000

/** The rows that are compared at a time. */
const rowsAtOnce = 1_000_000

/** The id of a row's record, of the same length whatever the service's is. */
const idOf = ({ key }: Pick<SharedTable, 'key'>, of = ''): string => `md5_number(${of}${quote(key[0]!)})`

const rowsOf = ({ manifest }: Side): number => manifest.tables[0]!.rows

const keptName = (side: SideName, { name }: SharedTable) => quote(`${side} ${name}`)

/** As `toGroup` has it for the totals of an export. */
const toGroup = `case when ${currencyColumn} is null then '' when regexp_full_match(${currencyColumn}, '([A-Za-z]{3})?')
  then ${currencyColumn} else 'other' end`
