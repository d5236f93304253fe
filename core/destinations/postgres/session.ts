import type { Client } from 'pg'

/** A result row: text by column. */
export type Row = Record<string, string | null>

/** One transaction over the schema of a warehouse. Nothing of it is visible outside until it commits. */
export interface Session {
  client: Client
  schema: string
  /** Describes the warehouse for people. */
  where: string
  /** The qualified name of one of its tables or views. */
  nameOf(table: string): string
  /** Returns how many rows the statement changed. */
  run(sql: string, values?: readonly unknown[]): Promise<number>
  all(sql: string, values?: readonly unknown[]): Promise<Row[]>
}
