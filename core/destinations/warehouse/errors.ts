/**
 * The warehouse cannot be reached, or the connection was lost: nothing was published, and a retry may help.
 */
export class UnreachableWarehouseError extends Error {
  override readonly name = 'UnreachableWarehouseError'
}

/**
 * The warehouse rejects these settings: password, database, permissions or encoding. Retrying does not help.
 */
export class WarehouseRefusedError extends Error {
  override readonly name = 'WarehouseRefusedError'
  readonly retryable = false
}

/** Another client is writing, or locks what has to be written; a later retry may help. */
export class BusyWarehouseError extends Error {
  override readonly name = 'BusyWarehouseError'
}

/** The warehouse belongs to another workspace, address or mode, or has its values in another form (excluded, hashed). */
export class ForeignWarehouseError extends Error {
  override readonly name = 'ForeignWarehouseError'
  readonly retryable = false
}

/** Someone else changed a table so that rows cannot be merged into it without loss. */
export class ChangedTableError extends Error {
  override readonly name = 'ChangedTableError'
  readonly retryable = false
}
