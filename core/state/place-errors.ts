/** Errors of a state that is elsewhere, or whose files are. */

/** The state of a data folder was moved to PostgreSQL, and the settings do not name it. */
export class StateMovedError extends Error {
  override readonly name = 'StateMovedError'
  readonly retryable = false
  constructor({ folder, to, at }: { folder: string; to: string; at: string }) {
    super(
      `The state of the data folder ${folder} was moved to ${to} at ${at}: set CONNECTOR_STATE_URL to that database. ` +
        'The state.db left behind does not know what was sent since.',
    )
  }
}

/** The settings name a database that is not the one to which the folder's state was moved. */
export class NotMovedHereError extends Error {
  override readonly name = 'NotMovedHereError'
  readonly retryable = false
  constructor({ place, moved }: { place: string; moved: string }) {
    super(
      `The state of this data folder was moved to ${moved}, and ${place} has another one or none. Correct ` +
        'CONNECTOR_STATE_URL and BILLING_WORKSPACE; if the move was interrupted, repeat `connector state move`.',
    )
  }
}

/** The settings name a database, and the data folder still has a state of its own. */
export class StateNotMovedError extends Error {
  override readonly name = 'StateNotMovedError'
  readonly retryable = false
  constructor({ folder }: { folder: string }) {
    super(
      `The data folder ${folder} has a state of its own (state.db), which knows what was sent. Move it to PostgreSQL with ` +
        '`connector state move`, or unset CONNECTOR_STATE_URL.',
    )
  }
}

/** A state cannot be moved to a place that has one. */
export class StateInUseError extends Error {
  override readonly name = 'StateInUseError'
  readonly retryable = false
  constructor({ place }: { place: string }) {
    super(
      `There is another state in ${place}, with changes or publications of its own: two states cannot be merged. Nothing was moved.`,
    )
  }
}

/** A worker uses the schema to which a state is to be moved. */
export class WorkerThereError extends Error {
  override readonly name = 'WorkerThereError'
  readonly retryable = false
  constructor(options: { place: string; worker: string; folder: string; ms: number }) {
    const { place, worker, folder, ms } = options
    super(
      `The worker ${worker} (data folder ${folder}) uses the state in ${place} and was seen ${Math.ceil(ms / 1000)} s ago. ` +
        'End all workers first; after one was killed, wait for half a minute.',
    )
  }
}

/** Another state was moved to the schema while a worker started there. */
export class StateReplacedError extends Error {
  override readonly name = 'StateReplacedError'
  readonly retryable = false
  constructor({ place }: { place: string }) {
    super(`Another state was moved to ${place} while this worker started: start it again.`)
  }
}

/** A state on PostgreSQL belongs to another bucket: the files of its runs are there. */
export class OtherBucketError extends Error {
  override readonly name = 'OtherBucketError'
  readonly retryable = false
  constructor({ place, files, bound }: { place: string; files: string; bound: string }) {
    super(
      `The files of the state in ${place} are in ${bound}, not in ${files}. Correct CONNECTOR_FILES_URL; if that bucket is ` +
        'lost, `connector state repair --files-lost` binds this one.',
    )
  }
}
