/** No way into the warehouse, or it went away: nothing of the publication is there, and trying again may help. */
export class UnreachableWarehouseError extends Error {
  override readonly name = 'UnreachableWarehouseError'
}

/** The warehouse can't be used with these settings: password, database, rights, encoding. Waiting mends none of it. */
export class WarehouseRefusedError extends Error {
  override readonly name = 'WarehouseRefusedError'
  readonly retryable = false
}

/** Someone else is writing, or holds what has to be written; trying again later may help. */
export class BusyWarehouseError extends Error {
  override readonly name = 'BusyWarehouseError'
}

/** The warehouse belongs to another workspace, address or mode. */
export class ForeignWarehouseError extends Error {
  override readonly name = 'ForeignWarehouseError'
  readonly retryable = false
}

/** A table was changed by someone else, so that rows can't be merged into it without loss. */
export class ChangedTableError extends Error {
  override readonly name = 'ChangedTableError'
  readonly retryable = false
}
