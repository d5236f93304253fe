import type { Table } from '../tables/table.ts'
import type { Manifest, ReadFacts } from './manifest/manifest.ts'

/**
 * A file with rows of one table: CSV as the row encoder writes it, without a header. Its first `bytes` bytes count
 * and hold `rows` rows; what comes after them was left by an attempt that died, and does not count.
 */
export interface PartFile {
  table: string
  path: string
  bytes: number
  rows: number
}

/** One read of one resource, ready to be made visible. */
export interface Publication {
  run: string
  resource: string
  workspace: string
  /** The service's base address. A warehouse is of one workspace, address and mode, and refuses others. */
  baseUrl: string
  /** Test data never lies where live data does. */
  testMode: boolean
  /** `byId`: documents that were asked for one by one; it says nothing of what was not asked for. */
  mode: 'full' | 'incremental' | 'byId'
  filters: Readonly<Record<string, string>>
  /** Whether the read was told to end before the list did. */
  capped: boolean
  /** The names under which columns were left out or hashed. */
  excluded: readonly string[]
  hashed: readonly string[]
  /** What tells the key that values were hashed with from another; exports of earlier versions have none. */
  hashedWith?: string
  tables: readonly Table[]
  parts: readonly PartFile[]
  /** Lines of JSON: what was no record. */
  rejected?: readonly PartFile[]
  /** Only of `byId`: the ids that do not exist, a line each, and the first of them. */
  missing?: { parts: readonly PartFile[]; first: readonly string[] }
  facts: ReadFacts
  /** What made it, by name: `{ connector: '0.1.0' }`. */
  versions: Readonly<Record<string, string>>
  /** The root of published exports; a folder `test` in it holds test data. Warehouses have no use for it. */
  folder: string
  /** The schema in PostgreSQL; `billing` where it is not given, `billing_test` for test data. */
  schema?: string
  /**
   * How many records a warehouse may mark as deleted at once. Where it is not given: a tenth of its records, and 10
   * at the least. More than that are not marked at all, and a warning in the manifest says so.
   */
  maxDeletes?: number | 'all'
  /** For a spreadsheet in the hands of people instead of machines; only csv has such a dialect. */
  forExcel?: boolean
  /** Ends the publishing before anything is visible; after that it has no effect. */
  signal?: AbortSignal
  /** Told as the work goes on: `staged` all rows are at the destination, unseen; `counted`; `visible`. */
  onStep?: (step: PublishStep) => void
}

export type PublishStep = 'staged' | 'counted' | 'visible'

export interface Published {
  manifest: Manifest
  /** Where it lies, for people: a folder, a file or a schema. */
  location: string
  /** The manifest's own file, where there is one. */
  manifestPath?: string
  /**
   * False where this run had been published here before. Nothing was changed then, but for deletes that had been
   * held back, if this publication allows them.
   */
  fresh: boolean
}

/**
 * Takes parts and makes them visible all at once or not at all: stages them, counts what arrived, then shows it.
 *
 * Publishing the same run again changes nothing and gives the same manifest. Whatever is thrown, the signal's
 * reason included, nothing of this publication is visible and what was staged is gone (or, after a crash, is
 * cleared away by the next publication of the run).
 * @throws {UnwritableError} the destination's own trouble: disk full, read-only, no permission
 * @throws {PartsDamagedError} the parts are not what their notes say
 * @throws {RowsMissingError} fewer or more rows arrived than were read
 * @throws {PublishedOtherwiseError} the run is there already, of another read or with other contents
 * @throws {UnreachableWarehouseError | BusyWarehouseError | ForeignWarehouseError | ChangedTableError} warehouses
 */
export interface Destination {
  readonly name: Manifest['destination']
  publish(publication: Publication): Promise<Published>
  /** What tells the place it writes to from another of its kind (a server, a database), where it has one to tell. */
  placeOf?(scope: Pick<Publication, 'testMode' | 'schema'>): Promise<string>
  /**
   * Up to when it holds every change of a list, in ms since 1970, by its own account: from the last proven export of
   * the whole list on, as far as the incremental ones join; undefined where there is none, or one with other columns
   * came since. A warehouse may be made anew, or come back from a backup. Only where it is one.
   * @throws {UnreachableWarehouseError | BusyWarehouseError | WarehouseRefusedError}
   */
  coveredThrough?(
    scope: Pick<Publication, 'testMode' | 'schema'>,
    of: Pick<Publication, 'resource' | 'filters' | 'excluded' | 'hashed'>,
  ): Promise<number | undefined>
}
