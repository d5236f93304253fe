import { connector } from '../runs/view/shell.ts'
interface Options {
  cause?: unknown
  /** Whether trying again may help. */
  retryable?: boolean
  /** Whether it may be over in a moment, so that an answer in hand waits for that. */
  passes?: boolean
}

/** An error of the state. Code tells the classes below apart; the others have only a name, for logs and Temporal. */
export class StateError extends Error {
  readonly retryable: boolean
  readonly passes: boolean
  constructor(name: string, message: string, { cause, retryable = false, passes = false }: Options = {}) {
    super(message, cause === undefined ? {} : { cause })
    this.name = name
    this.retryable = retryable || passes
    this.passes = passes
  }
}

/** `place`: the file, or the schema and its server, for people. */
interface PlaceAndCause {
  place: string
  cause?: unknown
}

/** There is no state yet, and the caller only reads. */
export class NoStateError extends StateError {
  constructor({ place }: PlaceAndCause) {
    super('NoStateError', `There is nothing in ${place} yet. The worker creates it when it first starts.`)
  }
}

/** The file cannot be opened or read: a wrong folder, missing permissions, a failing disk. */
export class StateUnreadableError extends StateError {
  constructor({ place, cause }: PlaceAndCause) {
    const detail = cause instanceof Error ? `: ${cause.message}` : ''
    const fix = 'Check CONNECTOR_DATA_DIR, its permissions and its disk.'
    super('StateUnreadableError', `${place} can't be opened or read${detail}. ${fix}`, { cause })
  }
}

/** Somebody else has locked the file, or the rows on a server, for longer than a writer waits. */
export class StateBusyError extends StateError {
  constructor({ place, cause, isServer = false }: PlaceAndCause & { isServer?: boolean }) {
    const text = isServer
      ? `PostgreSQL gave up waiting on ${place}: another session holds its rows, or the server is overloaded.`
      : `${place} is locked by another program. Only the worker may write it; end the other program.`
    super('StateBusyError', text, { cause, passes: true })
  }
}

/** PostgreSQL does not answer: it is down, restarting, out of connections, or the network is. Nothing is lost. */
export class StateAwayError extends StateError {
  constructor({ place, cause }: PlaceAndCause) {
    const text = `PostgreSQL does not answer for ${place}: ${causeText(cause)}. Nothing is sent meanwhile, and runs resume when it is back.`
    super('StateAwayError', text, { cause, passes: true })
  }
}

/** Two transactions were in each other's way, and PostgreSQL ended this one. The caller tries again. */
export class StateConflictError extends StateError {
  constructor({ place, cause }: PlaceAndCause) {
    const text = `PostgreSQL ended a transaction on ${place} in favor of another one.`
    super('StateConflictError', text, { cause, passes: true })
  }
}

/** Another change that is not rejected or dropped holds the key. */
export class KeyHeldError extends StateError {
  constructor({ cause }: { cause: unknown }) {
    const text = 'Another change holds the key of this change; check the run that holds it first.'
    super('KeyHeldError', text, { cause })
  }
}

/** Another attempt works on the run: this one may claim nothing more, and write nothing of the run. */
export class SupersededError extends StateError {
  constructor({ run }: { run: string }) {
    const text = `Another attempt works on ${run} now; this one has stopped.`
    super('SupersededError', text, { retryable: true })
  }
}

/** The ledger knows less than was done. It can continue once it is repaired. */
export class OldLedgerError extends StateError {
  constructor({ lacks }: { lacks: string }) {
    super(
      'OldLedgerError',
      `The ledger is older than what was sent: it lacks ${lacks}, so it was restored from a backup, or its server failed ` +
        `over. Nothing is sent. Stop all workers, run \`${connector`state repair`}\`, and start them again.`,
      { retryable: true },
    )
  }
}

/** This process no longer holds its data folder. It must stop at once; the worker that takes the folder next retries. */
export class LockLostError extends StateError {
  constructor({ folder }: { folder: string }) {
    super(
      'LockLostError',
      `The worker of ${folder} stopped: its file worker.lock was removed or replaced while it was running, so another ` +
        `process could use the folder at the same time. Leave that file alone and start the worker again; its runs resume.`,
      { retryable: true },
    )
  }
}

/** The disk is full: nothing was written, and nothing may be sent until space is free. */
export const diskFull = ({ place, cause }: PlaceAndCause): StateError =>
  new StateError(
    'DiskFullError',
    `No space left to write ${place}. Free some space on its disk, then run the same command again.`,
    { cause },
  )

/** The file was opened for reading, or the disk or server accepts no writes. A server that others fail over to will. */
export function readOnlyState({ place, cause, isServer = false }: PlaceAndCause & { isServer?: boolean }) {
  const fix = isServer
    ? 'CONNECTOR_STATE_URL has to name the primary, and its user must be allowed to write.'
    : 'Check its permissions and how its disk is mounted.'
  const text = `${place} can't be written: it is read-only. ${fix}`
  return new StateError('StateReadOnlyError', text, { cause, passes: isServer })
}

export const unstorableRow = ({ run, row }: { run: string; row: number }): StateError =>
  new StateError(
    'UnstorableRowError',
    `Row ${row} of ${run} contains the character NUL (U+0000), which the ledger cannot store. Remove it.`,
  )

/** Whether the state cannot be reached or written just now; it may be a moment later. */
export const isStateAway = (error: unknown): boolean => error instanceof StateError && error.passes

/** The message of a cause; of a host name with several addresses, that of the first one. */
export const causeText = (cause: unknown): string => {
  if (cause instanceof AggregateError && cause.message === '') return causeText(cause.errors[0])
  return cause instanceof Error ? cause.message : String(cause)
}

const corrupt = ({ place, cause }: PlaceAndCause) =>
  new StateError(
    'StateCorruptError',
    `${place} is damaged or not a state database. Move it aside and restore it from a backup; ` +
      `without it, the connector would not know which changes were sent.`,
    { cause },
  )
const busy = (of: PlaceAndCause) => new StateBusyError(of)
const unreadable = (of: PlaceAndCause) => new StateUnreadableError(of)

/** SQLite's primary result codes (https://sqlite.org/rescode.html); extended codes carry them in the low byte. */
const byCode: Readonly<Record<number, (of: PlaceAndCause) => StateError>> = {
  5: busy,
  6: busy,
  8: readOnlyState,
  10: unreadable,
  11: corrupt,
  13: diskFull,
  14: unreadable,
  26: corrupt,
}
const uniqueConstraint = 2067

/** Translates errors of SQLite; returns any other error unchanged. */
export function toStateError({ place, cause }: { place: string; cause: unknown }): unknown {
  if (!(cause instanceof Error) || !('errcode' in cause) || typeof cause.errcode !== 'number') return cause
  if (cause.errcode === uniqueConstraint) return new KeyHeldError({ cause })
  return byCode[cause.errcode & 0xff]?.({ place, cause }) ?? cause
}
