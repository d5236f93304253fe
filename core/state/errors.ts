/** What can be wrong with the state on disk. None of these is mended by trying again at once. */

interface Where {
  file: string
  cause?: unknown
}

const becauseOf = (cause: unknown) => (cause === undefined ? {} : { cause })

/** The file can't be opened or read: a wrong folder, missing rights, a failing disk. */
export class StateUnreadableError extends Error {
  override readonly name = 'StateUnreadableError'
  readonly retryable = false
  constructor({ file, cause }: Where) {
    const words = cause instanceof Error ? `: ${cause.message}` : ''
    super(
      `${file} can't be opened or read${words}. Check CONNECTOR_DATA_DIR, its rights and its disk.`,
      becauseOf(cause),
    )
  }
}

/** The file is no database, or a damaged one. */
export class StateCorruptError extends Error {
  override readonly name = 'StateCorruptError'
  readonly retryable = false
  constructor({ file, cause }: Where) {
    super(
      `${file} is damaged or is no state database. Move it aside and restore it from a backup; ` +
        `starting without it would forget which changes were sent.`,
      becauseOf(cause),
    )
  }
}

/** The file was opened for reading, or its disk takes no writes. */
export class StateReadOnlyError extends Error {
  override readonly name = 'StateReadOnlyError'
  readonly retryable = false
  constructor({ file, cause }: Where) {
    super(`${file} can't be written: it is read-only. Check its rights and how its disk is mounted.`, {
      cause,
    })
  }
}

/** No room left: nothing was written, and nothing may be sent before there is room again. */
export class DiskFullError extends Error {
  override readonly name = 'DiskFullError'
  readonly retryable = false
  constructor({ file, cause }: Where) {
    super(`No space is left to write ${file}. Free some on its disk; the run then goes on where it was.`, {
      cause,
    })
  }
}

/** Another program held the file for longer than the busy timeout. */
export class StateBusyError extends Error {
  override readonly name = 'StateBusyError'
  readonly retryable = true
  constructor({ file, cause }: Where) {
    super(`${file} is held by another program. Only the worker writes it; end what else has it open.`, {
      cause,
    })
  }
}

/** The state was written by a newer version of the connector. */
export class StateTooNewError extends Error {
  override readonly name = 'StateTooNewError'
  readonly retryable = false
  constructor({ file, migration }: { file: string; migration: string }) {
    super(
      `${file} was written by a newer version of the connector (it has the migration ${migration}). ` +
        `Run that version, or restore a backup from before the upgrade.`,
    )
  }
}

/** The state is older than this program and was opened for reading only, so it can't be brought up to date. */
export class StateTooOldError extends Error {
  override readonly name = 'StateTooOldError'
  readonly retryable = false
  constructor({ file }: { file: string }) {
    super(
      `${file} is from an older version of the connector. Start the worker once: it brings it up to date.`,
    )
  }
}

/** A live process already holds the data folder. */
export class FolderLockedError extends Error {
  override readonly name = 'FolderLockedError'
  readonly retryable = false
  readonly holder: LockHolder | undefined
  constructor({ folder, holder }: { folder: string; holder: LockHolder | undefined }) {
    const who =
      holder === undefined
        ? 'another process'
        : `the ${holder.role} with pid ${holder.pid}, started ${holder.startedAt}`
    super(
      `The data folder ${folder} is in use by ${who}. One process a data folder: end it first, ` +
        `or choose another CONNECTOR_DATA_DIR. A stopped (frozen) process still holds it.`,
    )
    this.holder = holder
  }
}

/** This process no longer holds its data folder: its lock file was removed or replaced. It must stop at once. */
export class LockLostError extends Error {
  override readonly name = 'LockLostError'
  /** By the worker that holds the folder next. */
  readonly retryable = true
  constructor({ folder }: { folder: string }) {
    super(
      `The worker of ${folder} stopped: its file worker.lock was removed or replaced while it ran, so another ` +
        `process could use the folder at the same time. Leave that file alone, and start the worker again; its runs resume.`,
    )
  }
}

/** The key of a change is held by another change that is not rejected or dropped. */
export class KeyHeldError extends Error {
  override readonly name = 'KeyHeldError'
  readonly retryable = false
  constructor({ cause }: { cause: unknown }) {
    super('The key of this change is held by another change; look at the run that holds it first.', { cause })
  }
}

/** A run of this name has other contents in the ledger than the ones now staged under its name. */
export class RunTakenError extends Error {
  override readonly name = 'RunTakenError'
  readonly retryable = false
  constructor({ run, row }: { run: string; row: number }) {
    super(
      `The run ${run} already has a row ${row} with other contents. ` +
        `Start the new contents under a name of their own.`,
    )
  }
}

/** Who holds a data folder, as its note says. */
export interface LockHolder {
  pid: number
  /** The system's own start time of the process, which tells it from a later one with the same pid. */
  startTime?: string | undefined
  role: string
  /** ISO 8601, the holder's clock. */
  startedAt: string
}

// SQLite's primary result codes (https://sqlite.org/rescode.html); extended codes carry them in the low byte.
const byCode: Readonly<Record<number, (where: Where) => Error>> = {
  5: (where) => new StateBusyError(where),
  6: (where) => new StateBusyError(where),
  8: (where) => new StateReadOnlyError(where),
  10: (where) => new StateUnreadableError(where),
  11: (where) => new StateCorruptError(where),
  13: (where) => new DiskFullError(where),
  14: (where) => new StateUnreadableError(where),
  26: (where) => new StateCorruptError(where),
}
const uniqueConstraint = 2067

/** An error of SQLite in our words; any other error as it is. */
export function toStateError({ file, cause }: { file: string; cause: unknown }): unknown {
  if (!(cause instanceof Error) || !('errcode' in cause) || typeof cause.errcode !== 'number') return cause
  if (cause.errcode === uniqueConstraint) return new KeyHeldError({ cause })
  return byCode[cause.errcode & 0xff]?.({ file, cause }) ?? cause
}
