import type { ColumnKind, WarehouseColumn } from '../layout.ts'
import { quote } from '../sql.ts'

/** A type for each column, by name. */
export type ColumnTypes = ReadonlyMap<string, string>

/** What differs between the type systems of warehouses. */
export interface TypeSystem {
  /**
   * The types each kind of column may have, preferred type first; each can hold every value of the one
   * before it. No value is ever rounded or cut: a column gets the first type that holds every value exactly.
   */
  readonly types: Readonly<Record<ColumnKind, readonly [string, ...string[]]>>
  /** SQL that tests whether a staged cell or a table's value, not null, is exactly of a type of its kind. */
  isExactly(type: string, cell: string): string
  /** Whether tables have primary keys and indexes. */
  readonly hasKeys: boolean
  /** What follows the name in `create table ... as`. */
  readonly tableOptions: string
  /** SQL for a column's value in a staged row `s`, as a type that holds it. */
  stagedValue(column: WarehouseColumn, type: string): string
  /** SQL for an instant as microseconds since 1970. */
  microseconds(instant: string): string
  /** Statements that change column types, by name. */
  retype(table: string, types: ColumnTypes): string[]
}

interface TypedColumn {
  name: string
  kind: ColumnKind
}

/** The columns that may need another type than the first of their kind. */
const doubtful = <C extends TypedColumn>({ types }: TypeSystem, columns: readonly C[]): C[] =>
  columns.filter(({ kind }) => types[kind].length > 1)

/**
 * A query with one result row over all given rows: for each doubtful column, the index of the first type of
 * its kind that holds every value exactly. Undefined if no column is doubtful.
 */
export function leastTypesQuery(options: {
  typeSystem: TypeSystem
  columns: readonly (TypedColumn & { cell: string })[]
  rows: string
}): string | undefined {
  const { typeSystem, columns, rows } = options
  const places = doubtful(typeSystem, columns).map(({ name, kind, cell }) => {
    const fits = typeSystem.types[kind]
      .slice(0, -1)
      .map((type, at) => `when ${typeSystem.isExactly(type, quote(cell))} then ${at}`)
    return `max(case when ${quote(cell)} is null then 0 ${fits.join(' ')} else ${fits.length} end) as ${quote(name)}`
  })
  return places.length === 0 ? undefined : `select ${places.join(', ')} from ${rows}`
}

/**
 * The narrowest types that the result of `leastTypesQuery` allows; other columns get the first type of their
 * kind.
 */
export function leastTypes(options: {
  typeSystem: TypeSystem
  columns: readonly TypedColumn[]
  found: Readonly<Record<string, string | null>> | undefined
}): ColumnTypes {
  const { typeSystem, columns, found } = options
  return new Map(columns.map(({ name, kind }) => [name, typeSystem.types[kind][Number(found?.[name] ?? 0)]!]))
}
