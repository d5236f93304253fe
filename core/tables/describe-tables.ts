import type { Kind, TableSource } from './table.ts'
import { toTables } from './to-tables.ts'

/** A line of the docs page of tables and columns. */
export interface ColumnLine {
  table: string
  column: string
  type: Kind
  /** Where the value stands in the record. */
  comesFrom: string
  note: string
}

/** Every column of every table of some resources, in the order in which CSV files hold them. */
export function describeTables(resources: readonly TableSource[]): ColumnLine[] {
  return resources.flatMap((resource) =>
    toTables(resource).flatMap((table) =>
      table.columns.map(({ name, kind, source, note = '' }) => ({
        table: table.name,
        column: name,
        type: kind,
        comesFrom: source,
        note,
      })),
    ),
  )
}
