import type { PartFile, Publication } from '../destination.ts'
import type { WarehouseName } from '../names.ts'
import type { ColumnTypes, TypeSystem } from './column-types.ts'
import type { WarehouseTable } from './layout.ts'

/** A row of a result, as text by column. */
export type ResultRow = Record<string, string | null>

export interface Staging {
  table: WarehouseTable
  parts: readonly PartFile[]
  /** The types that the columns have in the warehouse. */
  types: ColumnTypes
}

/** One transaction in a warehouse. Nothing of it is seen from outside before it is over. */
export interface WarehouseSession {
  readonly typeSystem: TypeSystem
  /** The schema in which the tables lie. */
  readonly schema: string
  /** How many rows the statement changed; of several, split by semicolons, that is not told. */
  run(sql: string): Promise<number>
  all(sql: string): Promise<ResultRow[]>
  /** The rows of any number, a few at a time. */
  stream(sql: string): AsyncIterable<ResultRow>
  /** The types of the columns of every table and view in the schema, by table and column, in their order. */
  describe(): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>>
  /**
   * Copies parts into a table of this session (see `stagedName`), from which `stagedValue` gives each column.
   * @returns the least types that hold what is staged exactly
   * @throws {PartsDamagedError}
   */
  stage(staging: Staging): Promise<ColumnTypes>
  /**
   * Waits until no one else merges here, and keeps it so to the end of the transaction. To be taken before anything
   * is written but what is staged.
   */
  lock(): Promise<void>
  /** Views that others made on tables and views of the schema, by name: they keep types from being changed. */
  othersViews(relations: readonly string[]): Promise<string[]>
  /** Statements that give again the rights that others have on a view, after it was dropped and made again. */
  grantsOn(view: string): Promise<string[]>
}

/** Which warehouse a publication goes to. */
export type Scope = Pick<Publication, 'testMode' | 'schema' | 'signal'> & {
  /** Nothing is written, and a warehouse that is not there is not made. */
  readOnly?: boolean
}

/** A kind of warehouse. */
export interface WarehouseEngine {
  readonly name: WarehouseName
  /** Where a publication goes, for people. */
  locate(scope: Scope): string
  /** As `Destination.placeOf` gives it. */
  placeOf(scope: Scope): string
  /**
   * Does some work in one transaction: all of it is there when the promise is fulfilled, and nothing of it if it
   * is rejected. The scope's signal ends it with its reason, unless it is already being committed.
   */
  transaction<T>(scope: Scope, work: (session: WarehouseSession) => Promise<T>): Promise<T>
}
