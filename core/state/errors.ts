/** Errors of the state on disk. Retrying at once fixes none of them. */

interface StateErrorContext {
  file: string
  cause?: unknown
}

const withCause = (cause: unknown) => (cause === undefined ? {} : { cause })

/** There is no state yet, and the caller only reads. */
export class NoStateError extends Error {
  override readonly name = 'NoStateError'
  readonly retryable = false
  constructor({ place }: { place: string }) {
    super(`There is nothing in ${place} yet. The worker creates it when it first starts.`)
  }
}

/** The file cannot be opened or read: a wrong folder, missing permissions, a failing disk. */
export class StateUnreadableError extends Error {
  override readonly name = 'StateUnreadableError'
  readonly retryable = false
  constructor({ file, cause }: StateErrorContext) {
    const detail = cause instanceof Error ? `: ${cause.message}` : ''
    super(
      `${file} can't be opened or read${detail}. Check CONNECTOR_DATA_DIR, its permissions and its disk.`,
      withCause(cause),
    )
  }
}

/** The file is not a database, or is damaged. */
export class StateCorruptError extends Error {
  override readonly name = 'StateCorruptError'
  readonly retryable = false
  constructor({ file, cause }: StateErrorContext) {
    super(
      `${file} is damaged or not a state database. Move it aside and restore it from a backup; ` +
        `without it, the connector would not know which changes were sent.`,
      withCause(cause),
    )
  }
}

/** The file was opened for reading, or its disk does not accept writes. */
export class StateReadOnlyError extends Error {
  override readonly name = 'StateReadOnlyError'
  /** A PostgreSQL server that others fail over to becomes writable by itself. */
  readonly retryable: boolean
  constructor({ file, cause, isServer = false }: StateErrorContext & { isServer?: boolean }) {
    const fix = isServer
      ? 'CONNECTOR_STATE_URL has to name the primary, and its user must be allowed to write.'
      : 'Check its permissions and how its disk is mounted.'
    super(`${file} can't be written: it is read-only. ${fix}`, { cause })
    this.retryable = isServer
  }
}

/** The disk is full: nothing was written, and nothing may be sent until space is free. */
export class DiskFullError extends Error {
  override readonly name = 'DiskFullError'
  readonly retryable = false
  constructor({ file, cause }: StateErrorContext) {
    super(`No space left to write ${file}. Free some space on its disk; the run then resumes.`, {
      cause,
    })
  }
}

/** Another program locked the file for longer than the busy timeout. */
export class StateBusyError extends Error {
  override readonly name = 'StateBusyError'
  readonly retryable = true
  constructor({ file, cause, isServer = false }: StateErrorContext & { isServer?: boolean }) {
    const text = isServer
      ? `PostgreSQL gave up waiting on ${file}: another session holds its rows, or the server is overloaded.`
      : `${file} is locked by another program. Only the worker may write it; end the other program.`
    super(text, { cause })
  }
}

/** The state was written by a newer version of the connector. */
export class StateTooNewError extends Error {
  override readonly name = 'StateTooNewError'
  readonly retryable = false
  constructor({ file, version }: { file: string; version: number }) {
    super(
      `${file} was written by a newer version of the connector (its schema has the number ${version}). ` +
        `Run that version, or restore a backup from before the upgrade.`,
    )
  }
}

/** The state has the tables of a checkout from before the first release. */
export class StateTooOldError extends Error {
  override readonly name = 'StateTooOldError'
  readonly retryable = false
  constructor({ file }: { file: string }) {
    super(
      `${file} was written by an earlier checkout of the connector, whose tables this version cannot read. Let its runs end ` +
        'with that checkout, then move the state aside and start with a new one.',
    )
  }
}

/** A running process already holds the data folder. */
export class FolderLockedError extends Error {
  override readonly name = 'FolderLockedError'
  readonly retryable = false
  readonly holder: LockHolder | undefined
  constructor({ folder, holder }: { folder: string; holder: LockHolder | undefined }) {
    const owner =
      holder === undefined
        ? 'another process'
        : `the ${holder.role} with pid ${holder.pid}, started ${holder.startedAt}`
    super(
      `The data folder ${folder} is in use by ${owner}. Only one process may use it: end that one first, ` +
        `or choose another CONNECTOR_DATA_DIR. A suspended process still holds its folder.`,
    )
    this.holder = holder
  }
}

/** This process no longer holds its data folder: its lock file was removed or replaced. It must stop at once. */
export class LockLostError extends Error {
  override readonly name = 'LockLostError'
  /** Retried by the worker that takes the folder next. */
  readonly retryable = true
  constructor({ folder }: { folder: string }) {
    super(
      `The worker of ${folder} stopped: its file worker.lock was removed or replaced while it was running, so another ` +
        `process could use the folder at the same time. Leave that file alone and start the worker again; its runs resume.`,
    )
  }
}

export interface PlaceAndCause {
  /** The store's name for people. */
  place: string
  cause: unknown
}

/** The message of a cause; of a host name with several addresses, that of the first one. */
export const causeText = (cause: unknown): string => {
  if (cause instanceof AggregateError && cause.message === '') return causeText(cause.errors[0])
  return cause instanceof Error ? cause.message : String(cause)
}

/** PostgreSQL does not answer: it is down, restarting, out of connections, or the network is. Nothing is lost. */
export class StateAwayError extends Error {
  override readonly name = 'StateAwayError'
  readonly retryable = true
  constructor({ place, cause }: PlaceAndCause) {
    super(
      `PostgreSQL does not answer for ${place}: ${causeText(cause)}. Nothing is sent meanwhile, and runs resume when it is back.`,
      { cause },
    )
  }
}

/** Two transactions were in each other's way, and PostgreSQL ended this one. The caller tries again. */
export class StateConflictError extends Error {
  override readonly name = 'StateConflictError'
  readonly retryable = true
  constructor({ place, cause }: PlaceAndCause) {
    super(`PostgreSQL ended a transaction on ${place} in favor of another one.`, { cause })
  }
}

/** Whether the state cannot be reached or written just now; it may be a moment later. */
export const isStateAway = (error: unknown): boolean =>
  error instanceof StateBusyError ||
  error instanceof StateAwayError ||
  error instanceof StateConflictError ||
  (error instanceof StateReadOnlyError && error.retryable)

/** Another change that is not rejected or dropped holds the key. */
export class KeyHeldError extends Error {
  override readonly name = 'KeyHeldError'
  readonly retryable = false
  constructor({ cause }: { cause: unknown }) {
    super('Another change holds the key of this change; check the run that holds it first.', { cause })
  }
}

/** Another attempt works on the run: this one may claim nothing more, and write nothing of the run. */
export class SupersededError extends Error {
  override readonly name = 'SupersededError'
  readonly retryable = true
  constructor({ run }: { run: string }) {
    super(`Another attempt works on ${run} now; this one has stopped.`)
  }
}

/** The ledger knows less than was done: it was restored from a backup, or its server failed over to a replica that lags. */
export class OldLedgerError extends Error {
  override readonly name = 'OldLedgerError'
  /** It can continue once the ledger is repaired. */
  readonly retryable = true
  constructor({ lacks }: { lacks: string }) {
    super(
      `The ledger is older than what was sent: it lacks ${lacks}, so it was restored from a backup, or its server failed ` +
        'over. Nothing is sent. Stop all workers, run `connector state repair`, and start them again.',
    )
  }
}

/** The ledger has other contents for this run than those being staged. */
export class RunTakenError extends Error {
  override readonly name = 'RunTakenError'
  readonly retryable = false
  constructor({ run, row }: { run: string; row: number }) {
    super(
      `The run ${run} already has a row ${row} with other contents. ` +
        `Start the new contents under another name.`,
    )
  }
}

/** A row cannot be stored as it is. */
export class UnstorableRowError extends Error {
  override readonly name = 'UnstorableRowError'
  readonly retryable = false
  constructor({ run, row }: { run: string; row: number }) {
    super(
      `Row ${row} of ${run} contains the character NUL (U+0000), which the ledger cannot store. Remove it.`,
    )
  }
}

/** The holder of a data folder, from the note beside the lock. */
export interface LockHolder {
  pid: number
  /** The start time of the process according to the system; distinguishes it from a later one with the same pid. */
  startTime?: string | undefined
  role: string
  /** ISO 8601, the holder's clock. */
  startedAt: string
  /** Salted hashes of the settings that the holder was started with, by name. */
  settings?: Readonly<Record<string, string>> | undefined
}

// SQLite's primary result codes (https://sqlite.org/rescode.html); extended codes carry them in the low byte.
const byCode: Readonly<Record<number, (context: StateErrorContext) => Error>> = {
  5: (context) => new StateBusyError(context),
  6: (context) => new StateBusyError(context),
  8: (context) => new StateReadOnlyError(context),
  10: (context) => new StateUnreadableError(context),
  11: (context) => new StateCorruptError(context),
  13: (context) => new DiskFullError(context),
  14: (context) => new StateUnreadableError(context),
  26: (context) => new StateCorruptError(context),
}
const uniqueConstraint = 2067

/** Translates errors of SQLite; returns any other error unchanged. */
export function toStateError({ file, cause }: { file: string; cause: unknown }): unknown {
  if (!(cause instanceof Error) || !('errcode' in cause) || typeof cause.errcode !== 'number') return cause
  if (cause.errcode === uniqueConstraint) return new KeyHeldError({ cause })
  return byCode[cause.errcode & 0xff]?.({ file, cause }) ?? cause
}
