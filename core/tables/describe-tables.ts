import type { Kind, TableSource } from './table.ts'
import { toTables } from './privacy.ts'

/** One row of the docs page on tables and columns. */
export interface ColumnLine {
  table: string
  column: string
  type: Kind
  /** Path of the value in the record. */
  comesFrom: string
  note: string
}

/** Lists every column of every table of some resources, in CSV order. */
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
