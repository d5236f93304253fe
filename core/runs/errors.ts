/** The input of a run names something that does not exist or does not fit; nothing was done. */
export class InvalidInput extends Error {
  override readonly name = 'InvalidInput'
  readonly retryable = false
}

/** The run belongs to another workspace, address, mode or state store than this worker. */
export class WrongWorker extends Error {
  override readonly name = 'WrongWorker'
  readonly retryable = false
}

/** The data folder cannot be written: disk full, read-only, no permission. Retrying does not help. */
export class UnwritableFolder extends Error {
  override readonly name = 'UnwritableFolder'
  readonly retryable = false
  constructor({ dataDir, why, cause }: { dataDir: string; why: string; cause: NodeJS.ErrnoException }) {
    super(
      `Can't write to the data folder ${dataDir}: ${why} (${cause.code}${cause.path === undefined ? '' : ` at ${cause.path}`}). ` +
        'Fix this and run it again.',
      { cause },
    )
  }
}

/** Another active run does the same thing. */
export class Busy extends Error {
  override readonly name = 'Busy'
  readonly retryable = false
}

/**
 * The error message that may leave the data folder: into Temporal's history, a notification or a log. An
 * error whose message quotes a cell or the service also carries the message without the quote, as
 * `withoutValues`.
 */
export function outwardMessage(error: Error): string {
  return 'withoutValues' in error && typeof error.withoutValues === 'string'
    ? error.withoutValues
    : error.message
}
