import type { Table } from '../../tables/table.ts'
import type { PartFile } from '../destination.ts'
import { literal, quote, toWarehouseTable } from '../layout.ts'
import { verifyParts } from '../parts.ts'
import { type DuckDb, leastMemory, longestRow, memoryFor, toDuckDbError, withDuckDb } from './open.ts'
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
 * @param options.absent those of some ids that are not elsewhere either
 */
export async function findDangling(options: {
  from: PartColumn
  to: PartColumn
  beside: string
  most: number
  absent?: ((ids: string[]) => Promise<string[]>) | undefined
  signal: AbortSignal
}): Promise<{ checked: number; ids: number; first: NamedId[] }> {
  const { from, to, beside, most, absent, signal } = options
  const own = ({ table, parts }: PartColumn) => parts.filter((part) => part.table === table.name)
  const parts = [...own(from), ...own(to)]
  // DuckDB reads the files itself.
  await verifyParts(parts, { signal })
  const size = Math.max(usualBuffer, longestRow(parts) + 1)
  const cells = (of: PartColumn) => toCsv({ table: toWarehouseTable(of.table), files: own(of), size })
  const opening = { path: undefined, memory: memoryFor(parts, leastMemory), beside, signal }
  return await withDuckDb(opening, async (db) => {
    const [id, key] = [quote(from.column), quote(from.table.key[0]!)]
    await db.run(`create temporary table named as select ${id} as id, min(${key}) as child, count(*) as times
      from ${cells(from)} where ${id} is not null group by 1`)
    await db.run(`create temporary table dangling as select row_number() over () as place, id, child from named
      anti join (select ${quote(to.column)} as id from ${cells(to)}) using (id)`)
    if (absent !== undefined) await removeFound(db, absent)
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

async function removeFound(db: DuckDb, absent: (ids: string[]) => Promise<string[]>): Promise<void> {
  for (let place = 0; ; place += askedAtOnce) {
    const these = `place > ${place} and place <= ${place + askedAtOnce}`
    const rows = await db.all(`select to_json(id) as id from dangling where ${these}`)
    if (rows.length === 0) return
    const left = await absent(rows.map(({ id }) => textOf(id)))
    await db.run(
      `delete from dangling where ${these} and id not in (${['', ...left].map(literal).join(', ')})`,
    )
  }
}

/** The ids in one question to a warehouse. */
const askedAtOnce = 5_000

const textOf = (json: string | null | undefined) => JSON.parse(json ?? '""') as string
