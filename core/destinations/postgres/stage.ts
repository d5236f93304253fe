import { pipeline } from 'node:stream/promises'
import { DatabaseError } from 'pg'
import { from } from 'pg-copy-streams'
import type { Publication } from '../destination.ts'
import { PartsDamagedError } from '../errors.ts'
import { checkRows, readParts } from '../parts/read-parts.ts'
import { quote, stagedName } from '../sql.ts'
import type { Table } from '../../tables/table.ts'
import { keyCollation, type Session } from './session.ts'

/** Copies the parts of each table into a session table of texts, and returns how many rows arrived. */
export async function stageTables(
  session: Session,
  { tables, parts, signal }: Publication,
): Promise<Map<string, number>> {
  const staged = new Map<string, number>()
  for (const table of tables) {
    const own = parts.filter((part) => part.table === table.name)
    await createStaged(session, table)
    const rows = await copyInto(session, table, readParts(own, { signal, reusesBuffer: false }))
    checkRows(own, { table: table.name, rows, where: session.where })
    staged.set(table.name, rows)
  }
  return staged
}

/** Creates the session table that holds a table's cells as they are in CSV. */
export const createStaged = (session: Session, table: Table): Promise<number> =>
  session.run(`create temporary table ${stagedName(table.name)}
    (${table.columns.map((column) => `${quote(column.name)} text${keyCollation(table, column)}`).join(', ')}) on commit drop`)

/**
 * Copies CSV into the session table of a table: PostgreSQL reads our CSV and keeps NULL apart from empty text.
 * @throws {PartsDamagedError}
 */
export async function copyInto(
  { client }: Session,
  { name }: Pick<Table, 'name'>,
  csv: AsyncIterable<Buffer>,
  options = '',
): Promise<number> {
  const copy = client.query(from(`copy ${stagedName(name)} from stdin (format csv${options})`))
  await pipeline(csv, copy).catch((error: unknown) => {
    // PostgreSQL's message quotes the row: its contents must not leak.
    if (error instanceof DatabaseError && error.code?.startsWith('22') === true)
      throw new PartsDamagedError(
        `The parts of ${name} are no rows of that table (code ${error.code}). Run the export again.`,
      )
    throw error
  })
  return copy.rowCount
}
