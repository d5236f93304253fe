import { refusalOf } from '../storage/system-errors.ts'

/**
 * The destination, or the file of a comparison, cannot be written: disk full, read-only or no permission. Nothing of it is
 * visible.
 */
export class UnwritableError extends Error {
  override readonly name = 'UnwritableError'
  readonly retryable = false
  constructor(options: { where: string; cause: NodeJS.ErrnoException; undone?: string | undefined }) {
    const { where, cause, undone = 'Nothing of this export was published' } = options
    super(
      `Can't write to ${where}: ${refusalOf(cause) ?? cause.message} (${cause.code ?? 'unknown'}).` +
        ` ${undone}; fix this and run it again.`,
      { cause },
    )
  }
}

/** The parts, or the rows that arrived of them, are not those that were read: the read has to be repeated. */
export class PartsDamagedError extends Error {
  override readonly name = 'PartsDamagedError'
  readonly retryable = false
}

/** The error of parts that hold a row of a table twice. */
export const repeatedRow = (table: string): PartsDamagedError =>
  new PartsDamagedError(
    `The parts of ${table} hold a record more than once. Nothing was published; run the export again.`,
  )

/** The run was already published here with other contents, or has lost some of them. Published exports never change. */
export class AlreadyPublishedError extends Error {
  override readonly name = 'AlreadyPublishedError'
  readonly retryable = false
}

/**
 * Rejects an export some of whose files or tables somebody has removed: its manifest says that they are there.
 * @throws {AlreadyPublishedError}
 */
export function refuseIncomplete({ missing, where }: { missing: readonly string[]; where: string }): void {
  if (missing.length === 0) return
  throw new AlreadyPublishedError(
    `${where} holds this run already, and no longer has ${missing.join(', ')} as published. What is published is never` +
      ' changed: start a new run.',
  )
}

/**
 * The warehouse cannot be reached, the connection was lost, or another client is writing or holds a lock. Nothing was
 * published, and a retry may help.
 */
export class WarehouseAwayError extends Error {
  override readonly name = 'WarehouseAwayError'
}

/**
 * The warehouse rejects these settings: password, database, permissions or encoding. Retrying does not help.
 */
export class WarehouseRefusedError extends Error {
  override readonly name = 'WarehouseRefusedError'
  readonly retryable = false
}

/**
 * What is published there does not go with this read: it belongs to another workspace, address or mode, has its values in
 * another form (excluded, hashed), or is of a later read of the same resource. Nothing was written.
 */
export class NotAdmittedError extends Error {
  override readonly name = 'NotAdmittedError'
  readonly retryable = false
}

/** Someone else changed a table so that rows cannot be merged into it without loss. */
export class ChangedTableError extends Error {
  override readonly name = 'ChangedTableError'
  readonly retryable = false
}
