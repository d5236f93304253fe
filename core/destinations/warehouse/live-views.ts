import type { Table } from '../../tables/table.ts'
import { ChangedTableError } from '../errors.ts'
import { aboutTable, liveColumns, liveName } from '../layout.ts'
import { isOurs, toNotes, type Found, type TablePlan } from './schema-change.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote, stagedName } from '../sql.ts'

interface Changing {
  session: WarehouseSession
  found: Found
  plan: TablePlan
}

/**
 * Makes a table match its plan, with its live view, comment and indexes. Bulk loads are faster without
 * indexes, so their statements are returned, and that of a new table's primary key.
 * @throws {ChangedTableError} views made by others keep a type from being changed
 */
export async function changeTable({ session, found, plan }: Changing): Promise<string[]> {
  const { table } = plan.table
  const view = liveName(table)
  refuseForeignView({ session, found, plan })
  const isThere = found.columns.has(view)
  if (isThere && plan.statements.length === 0) return []
  const isDropped = isThere && plan.isRetyped
  if (plan.isRetyped) await refuseOthersViews(session, [table.name, view])
  const grants = isDropped ? await session.grantsOn(view) : []
  const inSchema = (name: string) => `${quote(session.schema)}.${quote(name)}`
  // A view can gain columns only after its existing ones.
  const names = new Set([
    ...(isDropped ? [] : (found.columns.get(view)?.keys() ?? [])),
    ...liveColumns(table).map(({ name }) => name),
  ])
  const statements = [
    ...(isDropped ? [`drop view ${inSchema(view)}`] : []),
    ...plan.statements,
    `create or replace view ${inSchema(view)} as select ${[...names].map(quote).join(', ')}
      from ${inSchema(table.name)} where "_deleted_at" is null`,
    ...toNotes({ session, name: view, columns: liveColumns(table) }),
    `comment on table ${inSchema(table.name)} is ${literal(aboutTable(table))}`,
    `comment on view ${inSchema(view)} is ${literal(`${table.name} without the records that are gone`)}`,
    ...grants,
  ]
  await session.run(statements.join(';\n'))
  if (!session.typeSystem.hasKeys) return []
  const key = `alter table ${inSchema(table.name)} add primary key (${table.key.map(quote).join(', ')})`
  return [...(plan.isNew ? [key] : []), ...toIndexes(table, inSchema)]
}

/** The longest text, in bytes, that is sure to fit into an index of PostgreSQL. */
const longestIndexed = 2_000

/** The columns with the id of another record ("customer id", "plan id"), each with the name of its index. */
const indexesOf = (table: Table): { column: string; index: string }[] =>
  table.columns
    .filter(
      ({ name, kind, note = '' }) =>
        !table.key.includes(name) && kind !== 'json' && /(?<!\btype )\bid\b/.test(note),
    )
    .map(({ name }) => ({ column: quote(name), index: quote(`${table.name}_${name}`) }))

/** One index for each column that holds the id of another record, unless one of its values is too long for any. */
const toIndexes = (table: Table, inSchema: (name: string) => string): string[] =>
  indexesOf(table).map(
    ({ column, index }) => `do $$ begin
      create index if not exists ${index} on ${inSchema(table.name)} (${column});
      exception when program_limit_exceeded then null; end $$`,
  )

/** Drops the indexes that would refuse a staged row: a long value costs its index, never the rows. */
export async function dropRefusingIndexes(session: WarehouseSession, table: Table): Promise<void> {
  const drops = indexesOf(table).map(
    ({
      column,
      index,
    }) => `if exists (select from ${stagedName(table.name)} where octet_length(${column}::text) > ${longestIndexed})
      then drop index if exists ${quote(session.schema)}.${index}; end if;`,
  )
  if (drops.length > 0) await session.run(`do $$ begin ${drops.join(' ')} end $$`)
}

function refuseForeignView({ session, found, plan }: Changing): void {
  const view = liveName(plan.table.table)
  const columns = [...(found.columns.get(view)?.keys() ?? [])]
  if (columns.every((column) => isOurs(found, view, column))) return
  throw new ChangedTableError(
    `There is ${quote(session.schema)}.${quote(view)}, which this connector did not make. Nothing was written: rename it, or` +
      ' name another schema.',
  )
}

async function refuseOthersViews(session: WarehouseSession, relations: readonly string[]): Promise<void> {
  const views = await session.othersViews(relations)
  if (views.length === 0) return
  throw new ChangedTableError(
    `A column of ${quote(session.schema)}.${quote(relations[0]!)} needs another type to hold what the service sends, and` +
      ` PostgreSQL does not change it while views read it: ${views.join(', ')}. Nothing was written: drop these views,` +
      ' publish the run again, and create them again.',
  )
}
