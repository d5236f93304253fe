/** An error that ends a run of changes. Code tells one class apart; the others have only a name, for logs and Temporal. */
export class ChangeError extends Error {
  readonly retryable = false
  constructor(name: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.name = name
  }
}

/** The id that a person gave for a parked change cannot be that of its record. */
export class WrongIdError extends ChangeError {
  constructor({ row, id, reason }: { row: number; id: string; reason: string }) {
    super('WrongIdError', `Row ${row} cannot exist as ${id}: ${reason}. Nothing was changed.`)
  }
}

/** A file of the run is missing or cut short, and the ledger lacks some of the run's changes. */
export const runFilesLost = ({ path, cause }: { path: string; cause?: unknown }): ChangeError =>
  new ChangeError(
    'RunFilesLostError',
    `${path} is missing or cut short, so it is unknown what this run staged. Nothing more was sent. ` +
      `Restore the run's folder from a backup, or run the same command again.`,
    cause,
  )
