/** The service made a change in the wrong mode (live or test): nothing more may be sent. */
export class WrongModeError extends Error {
  override readonly name = 'WrongModeError'
  readonly retryable = false
  constructor({
    row,
    requestedMode,
    answerId,
  }: {
    row: number
    requestedMode: 'live' | 'test'
    answerId: string | null
  }) {
    const other = requestedMode === 'live' ? 'test' : 'live'
    super(
      `row ${row} was requested in ${requestedMode} mode, but the service did it in ${other} mode, as ${answerId}. ` +
        `Nothing more was sent. Check BILLING_TEST_MODE and BILLING_TEST_MODE_HEADER, and undo that change by hand.`,
    )
  }
}

/** A change's body is larger than any that is sent. */
export class BodyTooLargeError extends Error {
  override readonly name = 'BodyTooLargeError'
  readonly retryable = false
  constructor({ row, bytes, max }: { row: number; bytes: number; max: number }) {
    const [size, limit] = [bytes, max].map((number) => number.toLocaleString('en'))
    super(`row ${row} makes a request of ${size} bytes; at most ${limit} are sent.`)
  }
}

/** A read in test mode did not show test data, so a write might act on live data. */
export class ModeNotShownError extends Error {
  override readonly name = 'ModeNotShownError'
  readonly retryable = false
  constructor({ seen }: { seen: string }) {
    super(
      `a read in test mode showed ${seen}, so nothing was written. Check BILLING_TEST_MODE_HEADER; ` +
        `if there is no test data yet, first create a customer in the dashboard's test mode.`,
    )
  }
}

/** A file of the run is missing or cut short, and the ledger lacks some of the run's changes. */
export class RunFilesLostError extends Error {
  override readonly name = 'RunFilesLostError'
  readonly retryable = false
  constructor({ path, cause }: { path: string; cause?: unknown }) {
    super(
      `${path} is missing or cut short, so it is unknown what this run staged. Nothing more was sent. ` +
        `Restore the run's folder from a backup, or run the same command again.`,
      { cause },
    )
  }
}

/** The id that a person gave for a parked change cannot be that of its record. */
export class WrongIdError extends Error {
  override readonly name = 'WrongIdError'
  readonly retryable = false
  constructor({ row, id, reason }: { row: number; id: string; reason: string }) {
    super(`Row ${row} cannot exist as ${id}: ${reason}. Nothing was changed.`)
  }
}

/** Nothing is in doubt about a parked change, so that a person cannot say what became of it. */
export class NotInDoubtError extends Error {
  override readonly name = 'NotInDoubtError'
  readonly retryable = false
  constructor({ run, row, error }: { run: string; row: number; error: string | null }) {
    super(
      `Row ${row} of ${run} cannot be resolved: only what was sent and lost its reply is in doubt. ` +
        `Fix it in the service instead${error === null ? '' : `: ${error}`}.`,
    )
  }
}

/** Only parked changes, and those that a person resolved as existing, can be resolved by a person. */
export class NotParkedError extends Error {
  override readonly name = 'NotParkedError'
  readonly retryable = false
  constructor({ run, row, state }: { run: string; row: number; state: string | undefined }) {
    super(
      state === undefined
        ? `${run} has no row ${row}. Its report lists the rows that need a person.`
        : state === 'parked'
          ? `row ${row} of ${run} has changed since this decision was made. Look at it again before you decide.`
          : `row ${row} of ${run} is ${state}, not parked; there is nothing to resolve.`,
    )
  }
}
