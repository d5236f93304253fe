import type { Table } from '../../tables/table.ts'
import type { PartFile } from '../destination.ts'
import { quote, toWarehouseTable } from '../layout.ts'
import { verifyParts } from '../parts.ts'
import { longestRow, memoryFor, toDuckDbError, withDuckDb } from './open.ts'
import { toCsv, toPartsError, usualBuffer } from './rows.ts'

/** A column of a table, and the parts of all tables of its read. */
export interface PartColumn {
  table: Table
  column: string
  parts: readonly PartFile[]
}

/** An id that a record names. */
export interface NamedId {
  id: string
  /** The id of a record that names it. */
  from: string
}

/**
 * Finds the ids in one column of the parts that another column lacks, in constant memory.
 *
 * @param options.beside a folder for what does not fit in memory; it is removed at the end
 * @param options.most how many of them to return
 */
export async function findDangling(options: {
  from: PartColumn
  to: PartColumn
  beside: string
  most: number
  signal: AbortSignal
}): Promise<{ checked: number; ids: number; first: NamedId[] }> {
  const { from, to, beside, most, signal } = options
  const own = ({ table, parts }: PartColumn) => parts.filter((part) => part.table === table.name)
  const parts = [...own(from), ...own(to)]
  // DuckDB reads the files itself.
  await verifyParts(parts, { signal })
  const size = Math.max(usualBuffer, longestRow(parts) + 1)
  const cells = (of: PartColumn) => toCsv({ table: toWarehouseTable(of.table), files: own(of), size })
  const opening = { path: undefined, memory: memoryFor(parts), beside, signal }
  return await withDuckDb(opening, async (db) => {
    const [id, key] = [quote(from.column), quote(from.table.key[0]!)]
    await db.run(`create temporary table named as select ${id} as id, min(${key}) as child, count(*) as times
      from ${cells(from)} where ${id} is not null group by 1`)
    await db.run(`create temporary table dangling as select id, child from named
      anti join (select ${quote(to.column)} as id from ${cells(to)}) using (id)`)
    const [counts] = await db.all(`select (select coalesce(sum(times), 0)::bigint from named) as checked,
      (select count(*) from dangling) as ids`)
    // As JSON: DuckDB's client drops a U+FEFF in front.
    const first = await db.all(
      `select to_json(id) as id, to_json(child) as child from dangling order by dangling.id limit ${most}`,
    )
    return {
      checked: Number(counts?.['checked']),
      ids: Number(counts?.['ids']),
      first: first.map(({ id, child }) => ({ id: textOf(id), from: textOf(child) })),
    }
  }).catch((error: unknown) => {
    signal.throwIfAborted()
    throw toDuckDbError(toPartsError(error, from.table.name), { path: beside })
  })
}

const textOf = (json: string | null | undefined) => JSON.parse(json ?? '""') as string
