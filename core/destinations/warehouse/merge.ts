import type { Publication } from '../destination.ts'
import { repeatedRow } from '../errors.ts'
import { instant, literal, quote, stagedName } from '../sql.ts'
import type { TablePlan } from './schema-change.ts'
import type { ResultRow, Staged, WarehouseSession } from './session.ts'

/**
 * Session tables: the staged records that are newer than the warehouse's, and what is kept of the old rows.
 */
const winners = '_winners'

export interface Merge {
  session: WarehouseSession
  publication: Publication
  /** The main table first. */
  plans: readonly TablePlan[]
  /** What is staged, by table. */
  staged: ReadonlyMap<string, Staged>
  /** Whether marks that are newer than the read count for nothing: somebody may have set them. */
  isDoubted: boolean
}

/** The result of merging a table's staged rows. */
export interface Merged {
  written: number
  /** Left unchanged, because the warehouse has newer versions of the same records. */
  kept: number
  /**
   * Main table only: records that were not there before, and those with a later `updated` than the stored
   * one.
   */
  counted?: { new: number; changed: number }
}

/**
 * Merges staged records into a warehouse, each as a whole with its children. A record replaces the stored
 * one unless that has a newer `updated`, or an equal one and was read later. The result is therefore the
 * same in whichever order two reads are merged.
 * @throws {PartsDamagedError} a record is staged twice
 */
export async function mergeRecords(merge: Merge): Promise<ReadonlyMap<string, Merged>> {
  const { session, plans, staged } = merge
  const [main, ...children] = plans as [TablePlan, ...TablePlan[]]
  const total = staged.get(main.table.table.name)!.rows
  const won = await findWinners(merge, main)
  const source = won.rows === total && won.isPlain ? 'all' : 'winners'
  const merged = new Map<string, Merged>()
  merged.set(main.table.table.name, {
    written: await replaceRows(merge, main, source),
    kept: total - won.rows,
    counted: { new: won.new, changed: won.changed },
  })
  if (won.rows < total) await seeAgain(merge, main)
  for (const child of children) {
    const written = await replaceRows(merge, child, source)
    merged.set(child.table.table.name, {
      written,
      kept: won.rows < total ? await countKept(merge, child) : 0,
    })
  }
  await session.run(`drop table if exists ${quote(winners)}`)
  return merged
}

/** The qualified name of a plan's table. */
const inSchema = ({ session }: Merge, { table }: TablePlan) =>
  `${quote(session.schema)}.${quote(table.table.name)}`

/** The column that holds a record's id, in a table or its child. */
const idOf = ({ table }: TablePlan) => quote(table.table.key[0]!)

/** SQL for a column's value in a staged row `s`. */
function valueOf({ session }: Merge, { table, types }: TablePlan, name: string): string {
  const column = table.columns.find((column) => column.name === name)!
  return session.typeSystem.stagedValue(column, types.get(name)!)
}

const hasInstant = ({ table, types }: TablePlan, name: string) =>
  table.columns.some((column) => column.name === name && column.kind === 'timestamp') &&
  types.get(name)?.toLowerCase() === 'timestamp with time zone'

/** Counts the records that win, and checks whether their rows keep nothing of the old ones. */
async function findWinners(
  merge: Merge,
  main: TablePlan,
): Promise<{ rows: number; isPlain: boolean; new: number; changed: number }> {
  const { session, publication, isDoubted } = merge
  if (main.isNew) return findAll(merge, main)
  const read = instant(publication.facts.startedAt)
  const id = idOf(main)
  const byRead = `t."_read_at" <= ${read}`
  const updated = hasInstant(main, 'updated') ? valueOf(merge, main, 'updated') : undefined
  const isNewer =
    updated === undefined
      ? byRead
      : `case when ${updated} > t."updated" then true when ${updated} < t."updated" then false else ${byRead} end`
  await session.run(`create temporary table ${quote(winners)} as
    select ${valueOf(merge, main, main.table.table.key[0]!)} as id,
      greatest(t."_read_at", ${read}) as read_at,
      case when t."_deleted_at" > ${read} and ${!isDoubted} then t."_deleted_at" end as deleted_at,
      t.${id} is null as is_new, ${updated === undefined ? 'false' : `${updated} > t."updated"`} as is_changed
    from ${stagedName(main.table.table.name)} s
    left join ${inSchema(merge, main)} t on t.${id} = ${valueOf(merge, main, main.table.table.key[0]!)}
    where t.${id} is null or ${isNewer}`)
  const [counted] = await session.all(
    `select count(*) as rows, count(distinct id) as records,
      count(case when read_at > ${read} or deleted_at is not null then 1 end) as special,
      count(case when is_new then 1 end) as new_records, count(case when is_changed then 1 end) as changed_records
    from ${quote(winners)}`,
  )
  refuseDuplicates(main, counted)
  return {
    rows: Number(counted?.['rows']),
    isPlain: counted?.['special'] === '0',
    new: Number(counted?.['new_records']),
    changed: Number(counted?.['changed_records']),
  }
}

/**
 * In a new table every staged record wins, and none has an old row. A key refuses duplicates when the table
 * gets it.
 */
async function findAll(merge: Merge, main: TablePlan): ReturnType<typeof findWinners> {
  const { session, plans, staged } = merge
  const id = valueOf(merge, main, main.table.table.key[0]!)
  const records = `${stagedName(main.table.table.name)} s`
  if (!session.typeSystem.hasKeys) {
    const [counted] = await session.all(
      `select count(*) as rows, count(distinct ${id}) as records from ${records}`,
    )
    refuseDuplicates(main, counted)
  }
  const { rows } = staged.get(main.table.table.name)!
  // Children of a main table that someone dropped may be there still.
  if (!plans.every(({ isNew }) => isNew))
    await session.run(`create temporary table ${quote(winners)} as select ${id} as id from ${records}`)
  return { rows, isPlain: true, new: rows, changed: 0 }
}

function refuseDuplicates({ table }: TablePlan, counted: ResultRow | undefined): void {
  if (counted?.['rows'] !== counted?.['records']) throw repeatedRow(table.table.name)
}

/**
 * Replaces the winners' rows in a table by their staged ones. If all staged records won and keep nothing of
 * the old rows, which is nearly always so, no winner has to be looked up. In a table with a key, a row is
 * replaced in its place: its indexes stay as they are where its page has room.
 */
async function replaceRows(merge: Merge, plan: TablePlan, source: 'all' | 'winners'): Promise<number> {
  const { session, publication, staged } = merge
  const { table } = plan
  const { rows: arrived, isFilled } = staged.get(table.table.name)!
  if (isFilled) return arrived
  const target = inSchema(merge, plan)
  const isInPlace = session.typeSystem.hasKeys && !plan.isNew
  const isMain = table.table.parent === undefined
  if (!plan.isNew && !(isInPlace && isMain)) await deleteRows(merge, plan, { isInPlace })
  const names = [...table.columns.map(({ name }) => name), '_run_id', '_read_at', '_deleted_at']
  const read = instant(publication.facts.startedAt)
  const values = [
    ...table.columns.map(({ name }) => valueOf(merge, plan, name)),
    `${literal(publication.run)}::${plan.types.get('_run_id')}`,
    source === 'winners' && isMain ? 'w.read_at' : read,
    source === 'winners' ? 'w.deleted_at' : 'null::timestamptz',
  ]
  const id = valueOf(merge, plan, table.table.key[0]!)
  const join = source === 'winners' ? `join ${quote(winners)} w on w.id = ${id}` : ''
  const rows = `select ${values.map((value, at) => `${value} as ${quote(names[at]!)}`).join(', ')}
    from ${stagedName(table.table.name)} s ${join}`
  // PostgreSQL fills a table faster while it creates it.
  if (plan.isNew) return session.run(`create table ${target} ${session.typeSystem.tableOptions} as ${rows}`)
  return session.run(`insert into ${target} (${names.map(quote).join(', ')})
    ${rows} ${isInPlace ? inPlace(plan, names) : ''}`)
}

/** Replaces the row that has the same key, also in the columns that this publication lacks. */
function inPlace({ table: { table }, leftOut }: TablePlan, names: readonly string[]): string {
  const replaced = [...names, ...leftOut].filter((name) => !table.key.includes(name)).map(quote)
  return `on conflict (${table.key.map(quote).join(', ')})
    do update set ${replaced.map((name) => `${name} = excluded.${name}`).join(', ')}`
}

/** Deletes the winners' rows from a table, without those that are replaced in their place. */
async function deleteRows(
  merge: Merge,
  plan: TablePlan,
  { isInPlace }: { isInPlace: boolean },
): Promise<void> {
  const { table } = plan.table
  const isStaged = table.key.map((name) => `${valueOf(merge, plan, name)} = t.${quote(name)}`).join(' and ')
  await merge.session.run(`delete from ${inSchema(merge, plan)} t using ${quote(winners)} w
    where t.${idOf(plan)} = w.id
    ${isInPlace ? `and not exists (select 1 from ${stagedName(table.name)} s where ${isStaged})` : ''}`)
}

/**
 * Updates when a record whose row is unchanged was last seen: this read may be later than the one it came
 * from.
 */
async function seeAgain(merge: Merge, main: TablePlan): Promise<void> {
  const { session, publication } = merge
  const read = instant(publication.facts.startedAt)
  await session.run(`update ${inSchema(merge, main)} as t set "_read_at" = ${read},
      "_deleted_at" = case when t."_deleted_at" > ${read} then t."_deleted_at" end
    from ${stagedName(main.table.table.name)} s
    where t.${idOf(main)} = ${valueOf(merge, main, main.table.table.key[0]!)} and t."_read_at" < ${read}`)
}

/** Counts staged rows of a child table whose records are in the warehouse, but not as staged. */
async function countKept(merge: Merge, child: TablePlan): Promise<number> {
  const main = merge.plans[0]!
  const id = valueOf(merge, child, child.table.table.key[0]!)
  const [counted] = await merge.session.all(`select count(*) as rows
    from ${stagedName(child.table.table.name)} s join ${inSchema(merge, main)} t on t.${idOf(main)} = ${id}
    where not exists (select 1 from ${quote(winners)} w where w.id = ${id})`)
  return Number(counted?.['rows'])
}
