import { ChangedTableError } from '../errors.ts'
import type { ColumnTypes, TypeSystem } from './column-types.ts'
import { runColumns, type WarehouseColumn, type WarehouseTable } from '../layout.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from '../sql.ts'
import { columnsTable } from './warehouse-owner.ts'

/** A warehouse's tables before a publication: the existing columns, and which of them we made. */
export interface Found {
  columns: ReadonlyMap<string, ReadonlyMap<string, string>>
  ours: ReadonlySet<string>
}

/** A table as a publication needs it, and the statements that make it so. */
export interface TablePlan {
  table: WarehouseTable
  /** Each column's type in the warehouse. */
  types: ColumnTypes
  statements: readonly string[]
  /** Whether this publication creates the table: with its rows, and before the statements. */
  isNew: boolean
  /** Whether existing columns change their types. */
  isRetyped: boolean
  /** The existing columns that the publication lacks. */
  leftOut: readonly string[]
}

const inRegistry = (table: string, column: string) => `${table}\0${column}`

/** Whether this connector made a column of a table or view. */
export const isOurs = ({ ours }: Found, table: string, column: string): boolean =>
  ours.has(inRegistry(table, column))

export async function findTables(options: {
  session: WarehouseSession
  columns: Found['columns']
  stamp: 'new' | 'ours'
}): Promise<Found> {
  const { session, columns, stamp } = options
  if (stamp === 'new') return { columns, ours: new Set() }
  const registry = await session.all(
    `select table_name, column_name from ${quote(session.schema)}.${quote(columnsTable)}`,
  )
  return {
    columns,
    ours: new Set(registry.map((row) => inRegistry(row['table_name'] ?? '', row['column_name'] ?? ''))),
  }
}

interface Planning {
  session: Pick<WarehouseSession, 'typeSystem' | 'schema'>
  found: Found
  table: WarehouseTable
  /** The narrowest type each column needs; default: the first of its kind. */
  needed?: ColumnTypes
}

/**
 * Plans how a table changes so that rows with columns of at least these types can be merged into it: creates
 * it, or adds or widens columns; never drops or narrows one.
 * @throws {ChangedTableError} someone else changed the table so that rows would not fit or would be lost
 */
export function planTable(planning: Planning): TablePlan {
  const { session, found, table, needed } = planning
  const { typeSystem } = session
  const existing = found.columns.get(table.table.name)
  const target = toTarget(planning)
  const least = ({ name, kind }: TableColumn) => needed?.get(name) ?? typeSystem.types[kind][0]
  const columns = [...table.columns, ...runColumns]
  if (existing === undefined) {
    const types = new Map(columns.map((column) => [column.name, least(column)]))
    const statements = toComments(planning, columns)
    return { table, types, statements, isNew: true, isRetyped: false, leftOut: [] }
  }
  refuseForeign({ found, table, target, existing })
  const types = new Map<string, string>()
  const retyped = new Map<string, string>()
  const statements: string[] = []
  for (const column of columns) {
    const is = existing.get(column.name)
    const type =
      is === undefined ? least(column) : widen({ typeSystem, column, is, least: least(column), target })
    types.set(column.name, type)
    if (is === undefined)
      statements.push(
        `alter table ${target} add column ${quote(column.name)} ${type}`,
        ...toComments(planning, [column]),
      )
    else if (is !== type) retyped.set(column.name, type)
  }
  if (retyped.size > 0) statements.push(...typeSystem.retype(target, retyped))
  const leftOut = [...existing.keys()].filter((name) => !types.has(name))
  return { table, types, statements, isNew: false, isRetyped: retyped.size > 0, leftOut }
}

type TableColumn = Pick<WarehouseColumn, 'name' | 'kind' | 'note'>

const toTarget = ({ session, table }: Planning) => `${quote(session.schema)}.${quote(table.table.name)}`

/** Comments on columns, for people and for later publications (they mark columns as ours). */
function toComments(planning: Planning, columns: readonly TableColumn[]): string[] {
  const { session, table } = planning
  return [
    ...toNotes({ session, name: table.table.name, columns }),
    ...columns.map(
      ({ name, note }) => `comment on column ${toTarget(planning)}.${quote(name)} is ${literal(note)}`,
    ),
  ]
}

/** SQL that records columns of a table or view as ours. */
export function toNotes(options: {
  session: Pick<WarehouseSession, 'schema'>
  name: string
  columns: readonly TableColumn[]
}): string[] {
  const { session, name: table, columns } = options
  const registry = `${quote(session.schema)}.${quote(columnsTable)}`
  const names = columns.map(({ name }) => literal(name))
  const rows = columns.map(({ name, kind, note }) => `(${[table, name, kind, note].map(literal).join(', ')})`)
  return [
    `delete from ${registry} where table_name = ${literal(table)} and column_name in (${names.join(', ')})`,
    `insert into ${registry} values ${rows.join(', ')}`,
  ]
}

function refuseForeign(options: {
  found: Found
  table: WarehouseTable
  target: string
  existing: ReadonlyMap<string, string>
}): void {
  const { found, table, target, existing } = options
  const { name } = table.table
  const strange = [...existing.keys()].filter((column) => !isOurs(found, name, column))
  if (strange.length === 0) return
  if (strange.length === existing.size)
    throw new ChangedTableError(
      `There is a table ${target} that this connector did not make. Nothing was written: rename it, or name` +
        ' another schema.',
    )
  throw new ChangedTableError(
    `Someone added ${strange.length === 1 ? 'a column' : 'columns'} to ${target}: ${strange.join(', ')}. Rows are` +
      ' replaced whole, so what is in there would be lost. Nothing was written: move it to a table of your own.',
  )
}

function widen(options: {
  typeSystem: TypeSystem
  column: TableColumn
  is: string
  least: string
  target: string
}): string {
  const { typeSystem, column, is, least, target } = options
  const ladder = typeSystem.types[column.kind]
  const text = typeSystem.types.text[0]
  // Text holds everything, so it stays text.
  if (is === text) return text
  const at = ladder.indexOf(is)
  if (at !== -1) return ladder[Math.max(at, ladder.indexOf(least))]!
  const isOurs = Object.values(typeSystem.types).some((types) => types.includes(is))
  if (least === text && isOurs) return text
  throw new ChangedTableError(
    `The column ${column.name} of ${target} is ${is}, and has to be ${least} to hold what the service sends.` +
      ' Nothing was written: change it back.',
  )
}
