import type { Publication } from '../destination.ts'
import { instant, quote, stagedName, type WarehouseColumn, type WarehouseTable } from '../layout.ts'
import type { ReadFacts } from '../manifest.ts'
import type { Database, Found } from './tables.ts'

/** The rows of a publication in tables of the session. */
export interface Staged {
  /** How many rows each table brings. */
  rows: Map<string, number>
  /** With the values that only this warehouse cannot hold. */
  facts: ReadFacts
}

/** What each database does in SQL of its own. */
export interface Merging {
  /** Copies the parts into tables of the session. */
  stage(tables: readonly WarehouseTable[]): Promise<Staged>
  /** SQL for a column's value in a staged row `s`. */
  valueOf(column: WarehouseColumn): string
  /**
   * Waits until no other session is publishing, and excludes others until the transaction ends, and anybody else who would
   * change rows of these tables.
   */
  lock(): Promise<void>
  /**
   * Replaces the staged records, the main table first, each as a whole with its child rows.
   * @param found the tables before the publication
   * @throws {PartsDamagedError} a row is staged twice
   */
  replace(tables: readonly WarehouseTable[], found: Found): Promise<void>
}

export interface Merged {
  /** How many rows of each table were left as they are, because the warehouse has newer versions of the same records. */
  kept: ReadonlyMap<string, number>
  /** Records that were not there before, and those with a later `updated` than the stored one. */
  changes: { new: number; changed: number }
}

/** The column that holds a record's id, in a table or its child. */
export const idOf = ({ table }: Pick<WarehouseTable, 'table'>): string => quote(table.key[0]!)

const findColumn = ({ columns }: WarehouseTable, name: string) => columns.find((one) => one.name === name)

/** SQL for the id in a staged row `s`, with its type in the warehouse. */
export const stagedIdOf = ({ valueOf }: Pick<Merging, 'valueOf'>, table: WarehouseTable): string =>
  valueOf(findColumn(table, table.table.key[0]!)!)

/**
 * Merges the staged rows into the tables. No stored record was read later: see `checkOrder`. A record replaces the stored one
 * unless that has a newer `updated`, as where a replica of the service lags behind: then it only notes that it was seen.
 */
export async function mergeRecords(
  db: Database,
  merging: Merging,
  of: { publication: Publication; tables: readonly WarehouseTable[]; rows: Staged['rows']; found: Found },
): Promise<Merged> {
  const { publication, tables, rows, found } = of
  const [main] = tables as [WarehouseTable, ...WarehouseTable[]]
  const kept = new Map<string, number>()
  const changes = { new: rows.get(main.table.name)!, changed: 0 }
  if (found.columns.has(main.table.name)) {
    const target = db.nameOf(main.table.name)
    const id = stagedIdOf(merging, main)
    const updated = findColumn(main, 'updated')
    const isUpdated = (sign: string) =>
      updated?.kind === 'timestamp' ? `${merging.valueOf(updated)} ${sign} t.updated` : 'false'
    const joined = `from ${stagedName(main.table.name)} s left join ${target} t on t.${idOf(main)} = ${id}`
    const [counted = {}] = await db.all(`select count(*) filter (where t.${idOf(main)} is null) as new,
      count(*) filter (where ${isUpdated('>')}) as changed, count(*) filter (where ${isUpdated('<')}) as stale ${joined}`)
    changes.new = Number(counted['new'])
    changes.changed = Number(counted['changed'])
    if (counted['stale'] !== '0') {
      await db.run(`create temporary table _stale as
        select s.${idOf(main)} as cell, ${id} as id ${joined} where ${isUpdated('<')}`)
      for (const table of tables) {
        const staged = stagedName(table.table.name)
        const left = await db.run(`delete from ${staged} where ${idOf(table)} in (select cell from _stale)`)
        kept.set(table.table.name, left)
      }
      await db.run(`update ${target} set _read_at = ${instant(publication.facts.startedAt)}, _deleted_at = null
        where ${idOf(main)} in (select id from _stale)`)
    }
  }
  await merging.replace(tables, found)
  return { kept, changes }
}

/**
 * Leaves out what no key allows: of several staged records with one id, the one that was changed last stays, without rows in
 * child tables, because nothing tells whose they are. Tells people so.
 * @param rows how many rows each table brings, which this lowers
 */
export async function leaveOutRepeated(
  db: Database,
  { tables, rows }: { tables: readonly WarehouseTable[]; rows: Map<string, number> },
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return []
  const [main, ...children] = tables as [WarehouseTable, ...WarehouseTable[]]
  const staged = stagedName(main.table.name)
  const order = ['updated', 'created']
    .filter((name) => main.columns.some((column) => column.name === name && column.kind === 'timestamp'))
    .map((name) => `${name}::timestamptz desc nulls last, `)
  const isRepeated = (table: WarehouseTable) => `${idOf(table)} in (select id from _repeated)`
  await db.run(`create temporary table _repeated as
    select ${idOf(main)} as id from ${staged} group by 1 having count(*) > 1`)
  const remove = async (table: WarehouseTable, condition: string) => {
    const { name } = table.table
    rows.set(name, rows.get(name)! - (await db.run(`delete from ${stagedName(name)} where ${condition}`)))
  }
  for (const child of children) await remove(child, isRepeated(child))
  await remove(
    main,
    `${db.rowId} in (select place from (select ${db.rowId} as place, row_number() over
      (partition by ${idOf(main)} order by ${order.join('')}${db.rowId}) as nth
      from ${staged} where ${isRepeated(main)}) as numbered where nth > 1)`,
  )
  const names = children.map(({ table }) => table.name)
  const without = names.length === 0 ? '' : `, without rows in ${names.join(' and ')}`
  const more = ids.length > 5 ? ` and ${ids.length - 5} more` : ''
  return [
    `Of the records with one id, the one that was changed last is here${without}: ${ids.slice(0, 5).join(', ')}${more}.`,
  ]
}
