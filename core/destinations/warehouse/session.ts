import type { PartFile, Publication } from '../destination.ts'
import type { WarehouseName } from '../names.ts'
import type { ColumnTypes, TypeSystem } from './column-types.ts'
import type { WarehouseTable } from '../layout.ts'

/** A result row: text by column. */
export type ResultRow = Record<string, string | null>

export interface Staging {
  table: WarehouseTable
  parts: readonly PartFile[]
  /** The types of the columns in the warehouse. */
  types: ColumnTypes
  /**
   * For a new table, with `fillsNewTables` and after `lock`: fills the table itself if every row fits these types. Its rows
   * get these values of the run.
   */
  fill?: { run: string; readAt: string }
}

/** What is staged for a table. */
export interface Staged {
  rows: number
  /** The narrowest types that hold every cell exactly. */
  types: ColumnTypes
  /** Whether the rows are in the new table itself, and in no session table. */
  isFilled: boolean
}

/** One warehouse transaction. Nothing of it is visible outside until it commits. */
export interface WarehouseSession {
  readonly typeSystem: TypeSystem
  /** Whether `stage` can copy rows straight into a new table. */
  readonly fillsNewTables: boolean
  /** The schema that holds the tables. */
  readonly schema: string
  /**
   * Returns how many rows the statement changed; unspecified for several statements separated by semicolons.
   */
  run(sql: string): Promise<number>
  all(sql: string): Promise<ResultRow[]>
  /** Streams the rows of a result of any size, a few at a time. */
  stream(sql: string): AsyncIterable<ResultRow>
  /** The column types of every table and view in the schema, by table and column, in order. */
  describe(): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>>
  /**
   * Copies parts into a session table (see `stagedName`), from which `stagedValue` gives each column, or into a new
   * table itself.
   * @throws {PartsDamagedError}
   */
  stage(staging: Staging): Promise<Staged>
  /**
   * Waits until no other session is merging, and excludes others until the transaction ends, and anybody else who would
   * change rows of these tables: what a table holds then is what the publication has left. Call it before writing anything
   * other than session tables.
   */
  lock(tables: readonly string[]): Promise<void>
  /**
   * Views that others made on tables and views of the schema, by name: they keep types from being changed.
   */
  othersViews(relations: readonly string[]): Promise<string[]>
  /** Statements that restore others' permissions on a view after it was dropped and recreated. */
  grantsOn(view: string): Promise<string[]>
}

/** Selects the warehouse for a publication. */
export type Scope = Pick<Publication, 'testMode' | 'schema' | 'signal'> & {
  /** Writes nothing and does not create a missing warehouse. */
  readOnly?: boolean
}

/** A kind of warehouse. */
export interface WarehouseEngine {
  readonly name: WarehouseName
  /** Describes the warehouse for people. */
  locate(scope: Scope): string
  /** See `Destination.placeOf`. */
  placeOf(scope: Scope): string
  /**
   * Runs work in one transaction: commits if it resolves, rolls back if it rejects. The scope's signal
   * aborts it with its reason unless it is already committing.
   */
  transaction<T>(scope: Scope, work: (session: WarehouseSession) => Promise<T>): Promise<T>
}
