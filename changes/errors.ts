/** The service did a change in the other mode than the run's: nothing more may be sent. */
export class WrongModeError extends Error {
  override readonly name = 'WrongModeError'
  readonly retryable = false
  constructor({ row, asked, answerId }: { row: number; asked: 'live' | 'test'; answerId: string | null }) {
    const other = asked === 'live' ? 'test' : 'live'
    super(
      `row ${row} was asked for in ${asked} mode and the service did it in ${other} mode, as ${answerId}. ` +
        `Nothing more was sent. Check BILLING_TEST_MODE and BILLING_TEST_MODE_HEADER, and undo that one by hand.`,
    )
  }
}

/** A read in test mode did not show test data, so a write might act on live data. */
export class ModeNotShownError extends Error {
  override readonly name = 'ModeNotShownError'
  readonly retryable = false
  constructor({ seen }: { seen: string }) {
    super(
      `a read in test mode showed ${seen}, so nothing was written. Check BILLING_TEST_MODE_HEADER; ` +
        `where the test data is empty, make one customer in the dashboard's test mode first.`,
    )
  }
}

/** What a run keeps beside itself is gone or cut short, and the ledger lacks some of its changes. */
export class RunFilesLostError extends Error {
  override readonly name = 'RunFilesLostError'
  readonly retryable = false
  constructor({ path, cause }: { path: string; cause?: unknown }) {
    super(
      `${path} is missing or cut short, so what this run staged is not known. Nothing more was sent. ` +
        `Put the run's folder back from a backup, or start the same command again.`,
      { cause },
    )
  }
}

/** Only a parked change can be resolved by a person; all others find their own way. */
export class NotParkedError extends Error {
  override readonly name = 'NotParkedError'
  readonly retryable = false
  constructor({ run, row, state }: { run: string; row: number; state: string | undefined }) {
    super(
      state === undefined
        ? `${run} has no row ${row}. Look at its report for the rows that need a person.`
        : `row ${row} of ${run} is ${state}, not parked: there is nothing to resolve.`,
    )
  }
}
