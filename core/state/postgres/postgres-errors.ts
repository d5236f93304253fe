import { DatabaseError } from 'pg'
import {
  KeyHeldError,
  StateAwayError,
  StateBusyError,
  StateConflictError,
  StateError,
  causeText,
  diskFull,
  readOnlyState,
} from '../errors.ts'

interface PlaceAndCause {
  /** The store's name for people. */
  place: string
  cause: unknown
}

/** PostgreSQL answers and refuses the connector: a wrong password or database, or a user without rights. */
export const refusedState = ({ place, cause }: PlaceAndCause): StateError =>
  new StateError(
    'StateRefusedError',
    `PostgreSQL refuses the connector ${place}: ${causeText(cause)}. Correct CONNECTOR_STATE_URL, or give its user the ` +
      'right to create that schema and to create and use tables in it.',
    { cause },
  )

/** Translates errors of PostgreSQL and of the connection by SQLSTATE; returns any other error unchanged. */
export function toPostgresError({ place, cause }: PlaceAndCause): unknown {
  if (cause instanceof DatabaseError) return byCode({ place, cause, code: cause.code ?? '' })
  return isConnectionError(cause) ? new StateAwayError({ place, cause }) : cause
}

/** Codes and classes, the first two characters of a code: PostgreSQL's manual, appendix A. */
function byCode({ place, cause, code }: PlaceAndCause & { code: string }): unknown {
  switch (code) {
    case '53100':
      return diskFull({ place, cause })
    case '25006':
      return readOnlyState({ place, cause, isServer: true })
    case '23505':
      return new KeyHeldError({ cause })
    case '40001':
    case '40P01':
      return new StateConflictError({ place, cause })
    case '55P03':
    case '57014':
      return new StateBusyError({ place, cause, isServer: true })
    case '25P03':
    case '25P04':
      return new StateAwayError({ place, cause })
    case '42501':
      return refusedState({ place, cause })
  }
  switch (code.slice(0, 2)) {
    case '08':
    case '53':
    case '57':
    case '58':
      return new StateAwayError({ place, cause })
    case '28':
    case '3D':
      return refusedState({ place, cause })
  }
  // Its own message may quote a row, so it stays in `cause`.
  const text = `PostgreSQL failed on ${place} with the code ${code}; its log has the details.`
  return new StateError('StateFailedError', text, { cause, retryable: true })
}

/** The driver gives errors of its own no class and no code; those of the system have a code. */
const isConnectionError = (cause: unknown): boolean =>
  cause instanceof Error &&
  (cause instanceof AggregateError ||
    ('syscall' in cause && 'code' in cause) ||
    /^(Connection terminated|timeout exceeded|timeout expired|Query read timeout|Client has encountered|Client was closed|The server does not support SSL|Postgres connection has been discarded)/.test(
      cause.message,
    ))

/** Whether a connection is of no more use after this error. */
export const isConnectionLost = (error: unknown): boolean => error instanceof StateAwayError

/** Whether a statement failed because an earlier one of its transaction did. */
export const isConsequence = (error: unknown): boolean =>
  error instanceof DatabaseError && error.code === '25P02'
