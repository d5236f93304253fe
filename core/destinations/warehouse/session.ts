import type { PartFile, Publication } from '../destination.ts'
import type { WarehouseName } from '../names.ts'
import type { ColumnKind, WarehouseColumn, WarehouseTable } from './layout.ts'

/** A row of a result, as text by column. */
export type ResultRow = Record<string, string | null>

/** How a warehouse's types differ from another's. */
export interface TypeSystem {
  /**
   * The types that a kind of column may have, the preferred one first, each able to hold what the one before it
   * can. No value is ever rounded or cut: a column has the first type that holds every value exactly.
   */
  readonly types: Readonly<Record<ColumnKind, readonly [string, ...string[]]>>
  /** Whether tables are made with primary keys. */
  readonly hasKeys: boolean
  /** A type as a key's column is declared with, in `create table`. */
  keyType(type: string): string
  /** A column's value of a staged row `s`, as a type that holds it. */
  stagedValue(column: WarehouseColumn, type: string): string
  /** An instant as microseconds since 1970. */
  microseconds(instant: string): string
}

export interface Staging {
  table: WarehouseTable
  parts: readonly PartFile[]
  /** The type that each column is thought to have, by name. */
  types: ReadonlyMap<string, string>
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
  /** The types of the columns of every table in the schema, by table and column. */
  describe(): Promise<ReadonlyMap<string, ReadonlyMap<string, string>>>
  /**
   * Copies parts into a table of this session (see `stagedName`), from which `stagedValue` gives each column.
   * @returns the least types that hold what is staged: those given, or wider ones
   * @throws {PartsDamagedError}
   */
  stage(staging: Staging): Promise<ReadonlyMap<string, string>>
  /**
   * Waits until no one else merges here, and keeps it so to the end of the transaction. To be taken before anything
   * is written but what is staged.
   */
  lock(): Promise<void>
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
