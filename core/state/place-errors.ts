/** Errors of a state that is elsewhere, or that belongs to another folder or worker. */

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
        'CONNECTOR_STATE_URL and BILLING_WORKSPACE; if the move was interrupted, repeat `connector move-state`.',
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
        '`connector move-state`, or unset CONNECTOR_STATE_URL.',
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

/** A state on PostgreSQL belongs to another data folder or file store: the files of its runs are there. */
export class OtherFolderError extends Error {
  override readonly name = 'OtherFolderError'
  readonly retryable = false
  constructor({ place, files, bound }: { place: string; files: string; bound: string }) {
    super(
      `The files of the state in ${place} are in ${bound}, not in ${files}: workers on several machines share a state ` +
        'only with their files in one bucket (CONNECTOR_FILES_URL). Use that place; if it is lost, ' +
        '`connector state repair --files-lost` binds this one.',
    )
  }
}

/** Another worker uses the state on PostgreSQL. */
export class SecondWorkerError extends Error {
  override readonly name = 'SecondWorkerError'
  readonly retryable = false
  constructor(options: { place: string; worker: string; folder: string; ms: number }) {
    const { place, worker, folder, ms } = options
    super(
      `The worker ${worker} (data folder ${folder}) uses the state in ${place} and was seen ${Math.ceil(ms / 1000)} s ago: ` +
        'without CONNECTOR_FILES_URL, only one worker may. Set it for all of them, or end that one first; if it was ' +
        'killed, start this one again half a minute later.',
    )
  }
}

/** Another worker took this one's place while it was frozen or cut off from PostgreSQL. It must stop. */
export class PlaceTakenError extends Error {
  override readonly name = 'PlaceTakenError'
  /** Retried by the worker that uses the state now. */
  readonly retryable = true
  constructor({ place }: { place: string }) {
    super(
      `This worker stopped: it was silent for half a minute, and another one now uses the state in ${place}. Its runs resume there.`,
    )
  }
}
