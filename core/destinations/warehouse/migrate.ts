import { leastTypes, leastTypesQuery } from './column-types.ts'
import type { ColumnKind } from '../layout.ts'
import type { WarehouseSession } from './session.ts'
import { quote } from '../sql.ts'
import { columnsTable, exportsTable, newestLayout, ownerTable } from './warehouse-owner.ts'

/**
 * Gives tables of an earlier layout today's column types if every value fits them exactly: a DECIMAL with
 * fewer digits in DuckDB, bigint and jsonb in PostgreSQL. A table used by others' views keeps its types,
 * which still hold everything. Views, comments and indexes follow with each table's next publication.
 *
 * @returns whether the layout was an earlier one
 */
export async function migrate(session: WarehouseSession): Promise<boolean> {
  const { schema, typeSystem } = session
  const stamp = `${quote(schema)}.${quote(ownerTable)}`
  const [row] = await session.all(`select layout from ${stamp}`)
  if (Number(row?.['layout']) >= newestLayout) return false
  await session.run(`alter table ${quote(schema)}.${quote(exportsTable)} add column if not exists scope json`)
  const there = await session.describe()
  const ours = await session.all(
    `select table_name, column_name, kind from ${quote(schema)}.${quote(columnsTable)}`,
  )
  for (const [table, types] of there) {
    const columns = ours.flatMap((column) => {
      const { table_name: of, column_name: name = null, kind } = column
      const is = of === table && name !== null ? types.get(name) : undefined
      if (name === null || is === undefined || !isKind(session, kind) || !isNarrowable(session, kind, is))
        return []
      return [{ name, kind, cell: name }]
    })
    const rows = `${quote(schema)}.${quote(table)}`
    const query = leastTypesQuery({ typeSystem, columns, rows })
    if (query === undefined || (await session.othersViews([table])).length > 0) continue
    const [found] = await session.all(query)
    const narrower = [...leastTypes({ typeSystem, columns, found })].filter(
      ([name, type]) => type !== types.get(name),
    )
    for (const statement of narrower.length > 0 ? typeSystem.retype(rows, new Map(narrower)) : [])
      await session.run(statement)
  }
  await session.run(`update ${stamp} set layout = ${newestLayout}`)
  return true
}

const isKind = ({ typeSystem }: WarehouseSession, kind: string | null | undefined): kind is ColumnKind =>
  kind !== null && kind !== undefined && Object.hasOwn(typeSystem.types, kind)

/** Whether a column's type is not the first of its kind. Text columns stay text. */
function isNarrowable({ typeSystem }: WarehouseSession, kind: ColumnKind, is: string): boolean {
  const { types } = typeSystem
  return types[kind].indexOf(is) > 0 && is !== types.text[0]
}
