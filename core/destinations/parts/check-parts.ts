import type { PartFile, Publication } from '../destination.ts'
import { PartsDamagedError, RowsMissingError } from '../errors.ts'

/**
 * Checks that each part belongs to a published table.
 * @throws {PartsDamagedError}
 */
export function checkTables({ tables, parts }: Publication): void {
  const stray = parts.find((part) => !tables.some((table) => table.name === part.table))
  if (stray === undefined) return
  throw new PartsDamagedError(`The part file ${stray.path} is of no table of this export (${stray.table}).`)
}

/**
 * Checks that as many rows arrived as the parts hold.
 * @throws {RowsMissingError}
 */
export function checkRows(
  parts: readonly PartFile[],
  arrived: { table: string; rows: number; where: string },
): void {
  const read = rowsOf(parts)
  if (arrived.rows === read) return
  throw new RowsMissingError({ table: arrived.table, read, arrived: arrived.rows, where: arrived.where })
}

export const rowsOf = (parts: readonly PartFile[]): number => parts.reduce((sum, part) => sum + part.rows, 0)
