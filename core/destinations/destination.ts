import type { FileStore } from '../storage/file-store.ts'
import type { Table } from '../tables/table.ts'
import type { Manifest, ReadFacts, Reference } from './manifest.ts'

/**
 * A closed file with rows of one table, which never changes: CSV as the row encoder writes it, without a header. Its
 * rows and its checksum were counted while it was written.
 */
export interface PartFile {
  table: string
  path: string
  bytes: number
  rows: number
  /** No row has more bytes. */
  longest: number
  sha256: string
}

/**
 * One read of one resource, ready to publish. A warehouse belongs to one workspace, address and mode, and has one form of its
 * values (excluded, hashed), that of its first publication; it rejects others.
 */
export interface Publication extends Pick<
  Manifest,
  'run' | 'resource' | 'workspace' | 'testMode' | 'mode' | 'capped' | 'hashedWith'
> {
  filters: Readonly<Record<string, string>>
  excluded: readonly string[]
  hashed: readonly string[]
  /** When the run was started (ISO 8601): the same for every attempt, and each time that it is published. */
  begunAt: string
  /** The service's base address. */
  baseUrl: string
  tables: readonly Table[]
  parts: readonly PartFile[]
  /** Rejected items, as lines of JSON. */
  rejected?: readonly PartFile[]
  /** Only with `byId`: the ids that do not exist, one per line, and the first of them by name. */
  missing?: { parts: readonly PartFile[]; first: readonly string[] }
  /** The windows that the read of a list took, as lines of JSON. */
  certificate?: readonly PartFile[]
  facts: ReadFacts
  /** Whether the records that these name are in the export of the same run. */
  references?: readonly Reference[]
  /** The versions that made the export: `{ connector: '0.1.0' }`. */
  versions: Readonly<Record<string, string>>
  /** The root of published exports; its folder `test` holds test data. */
  folder: string
  /**
   * Where files are published instead, below `exports`, with the same folders; `folder` then holds only what is
   * being written.
   */
  store?: FileStore
  /** The PostgreSQL schema. Default: `billing`, or `billing_test` for test data. */
  schema?: string
  /**
   * The most records a warehouse may mark as deleted in one publication. Default: a tenth of its records,
   * but at least 10. If more are gone, none is marked, and the manifest carries a warning.
   */
  maxDeletes?: number | 'all'
  /** Writes for a spreadsheet rather than for programs; only csv has such a dialect. */
  forExcel?: boolean
  /** Cancels publishing before anything is visible; has no effect afterwards. */
  signal?: AbortSignal
  /**
   * Called at each step: `staged` (all rows are at the destination, not visible yet), `counted`, `visible`.
   */
  onStep?: (step: PublishStep) => void
}

/** The form of the values of a read. */
export type ValueForm = Pick<Publication, 'resource' | 'excluded' | 'hashed' | 'hashedWith'>

export type PublishStep = 'staged' | 'counted' | 'visible'

export interface Published {
  manifest: Manifest
  /** Where the export is, for people: a folder, an address, a file or a schema. */
  location: string
  /** The path or address of the manifest; a warehouse has it in `_exports`. */
  manifestPath?: string
  /**
   * False if this run was already published here. Nothing was changed then, except for deletes that had been
   * held back and that this publication allows.
   */
  fresh: boolean
}

/**
 * Makes parts visible all at once or not at all: stages them, counts what arrived, then shows it.
 *
 * Publishing the same run again changes nothing and returns the same manifest, except that a store gets back CSV
 * files that it has lost. If it throws, even for the signal's reason, nothing of this publication is visible and everything
 * staged has been removed (after a crash: is removed by the run's next publication; a store keeps the files that no
 * manifest names).
 * @throws {UnwritableError} disk full, read-only or no permission
 * @throws {PartsDamagedError} the parts, or the rows that arrived of them, are not those that were read
 * @throws {AlreadyPublishedError} the run is already published, from another read or with other contents, or has lost
 * some of them since
 * @throws {WarehouseAwayError | NotAdmittedError | ChangedTableError}
 * warehouses only
 */
export interface Destination {
  readonly name: Manifest['destination']
  publish(publication: Publication): Promise<Published>
  /**
   * Rejects before a read what `publish` would reject after it: values in another form than the warehouse has, and any read
   * while the warehouse has one from the future. Warehouses only.
   * @throws {NotAdmittedError | WarehouseAwayError | WarehouseRefusedError}
   */
  checkBeforeRead?(
    scope: Pick<Publication, 'testMode' | 'schema'>,
    of: {
      reads: readonly ValueForm[]
      /** By the clock that the reads would go by, in ms since 1970. */
      now: number
    },
  ): Promise<void>
  /** Tells this destination from others of its kind (by server and database), if there can be several. */
  placeOf?(scope: Pick<Publication, 'testMode' | 'schema'>): Promise<string>
  /**
   * The moment, in ms since 1970, up to which the warehouse itself shows that it holds every change of a
   * list: from its last proven export of the whole list, extended by the incremental exports that join
   * without a gap. Undefined if there is none, or if its tables are no longer as the last publication left them. Warehouses
   * only.
   * @throws {WarehouseAwayError | WarehouseRefusedError}
   */
  coveredThrough?(
    scope: Pick<Publication, 'testMode' | 'schema'>,
    of: Pick<Publication, 'resource' | 'filters'>,
  ): Promise<number | undefined>
}

/** A destination whose tables hold the newest state of every record across runs. */
export interface Warehouse extends Required<Destination> {
  /**
   * Compares its tables with an export in CSV files: every row of the export is there with the same values, unless another
   * run has written its record since; the run has no other rows; and no record that the export proves gone is unmarked.
   * Changes nothing.
   * @throws {WarehouseAwayError | WarehouseRefusedError}
   */
  compare(options: {
    manifest: Manifest
    /** The export's folder. */
    folder: string
    schema?: string | undefined
    signal?: AbortSignal | undefined
  }): Promise<Comparison>
}

/** The result of comparing a warehouse with an export. */
export interface Comparison {
  /** Describes the warehouse for people. */
  where: string
  tables: ComparedTable[]
  /** One sentence each. */
  problems: string[]
}

export interface ComparedTable {
  name: string
  /** Rows present as this run wrote them. */
  compared: number
  /** Rows last written by another run. */
  newer: number
}
