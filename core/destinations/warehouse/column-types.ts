import type { ColumnKind, WarehouseColumn } from './layout.ts'
import { quote } from './sql.ts'

/** A type for each column, by name. */
export type ColumnTypes = ReadonlyMap<string, string>

/** How the types of a warehouse differ from those of another. */
export interface TypeSystem {
  /**
   * The types that a kind of column may have, the preferred one first, each able to hold what the one before it
   * can. No value is ever rounded or cut: a column has the first type that holds every value exactly.
   */
  readonly types: Readonly<Record<ColumnKind, readonly [string, ...string[]]>>
  /** Whether a staged cell, or a value of a table, that is not null is exactly of a type of its kind. */
  isExactly(type: string, cell: string): string
  /** Whether tables have primary keys and indexes. */
  readonly hasKeys: boolean
  /** The type that a column of a key is declared with, in `create table`. */
  keyType(type: string): string
  /** The value of a column of a staged row `s`, as a type that holds it. */
  stagedValue(column: WarehouseColumn, type: string): string
  /** An instant as microseconds since 1970. */
  microseconds(instant: string): string
  /** Statements that change the types of columns, by name. */
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
 * A query of one row over all given rows: for each doubtful column, the place among the types of its kind of the first
 * one that holds every value exactly. Undefined where no column is doubtful.
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

/** The least types that the row of `leastTypesQuery` allows; the first of its kind for any other column. */
export function leastTypes(options: {
  typeSystem: TypeSystem
  columns: readonly TypedColumn[]
  found: Readonly<Record<string, string | null>> | undefined
}): ColumnTypes {
  const { typeSystem, columns, found } = options
  return new Map(columns.map(({ name, kind }) => [name, typeSystem.types[kind][Number(found?.[name] ?? 0)]!]))
}
