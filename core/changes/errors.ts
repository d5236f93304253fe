/** An error of a run of changes. Its name is for logs and Temporal. */
export class ChangeError extends Error {
  readonly retryable = false
  constructor(name: string, message: string, cause?: unknown) {
    super(message, cause === undefined ? {} : { cause })
    this.name = name
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
