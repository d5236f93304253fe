import { toPrivateFields, type Privacy } from './privacy.ts'
import { tablesOf, toRowPlan } from './encoder/row-plan.ts'
import type { Table, TableSource } from './table.ts'

/**
 * Builds the main table of a resource, followed by a child table for each array of objects in its schema.
 */
export function toTables(resource: TableSource, privacy: Privacy = {}): Table[] {
  return tablesOf(toRowPlan(resource, toPrivateFields(resource, privacy)))
}
