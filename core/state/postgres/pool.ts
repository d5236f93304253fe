import type { PostgresPool, PostgresPoolClient } from 'kysely'
import { DatabaseError, Pool, type PoolClient, TypeOverrides, types } from 'pg'
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
import { retryConflicts } from '../store.ts'

interface PoolOptions {
  url: string
  /** The store's name for people. */
  place: string
  max: number
  readOnly: boolean
}

/** A connection that is this long without an answer is given up; the server ends a statement after 30 s itself. */
const answerWithinMs = 45_000

/** A pool for kysely that translates errors, and closes a connection that no longer answers. */
export function createPool({ url, place, max, readOnly }: PoolOptions): PostgresPool {
  const pool = new Pool({
    connectionString: url,
    application_name: 'connector',
    max,
    connectionTimeoutMillis: 10_000,
    query_timeout: answerWithinMs,
    // A claim should find its connection open.
    idleTimeoutMillis: 300_000,
    allowExitOnIdle: true,
    keepAlive: true,
    types: stateTypes,
  })
  // A lost connection also fails its query, which reports it, or is replaced before the next one.
  pool.on('error', () => {})
  pool.on('connect', (client) => client.on('error', () => {}))
  return {
    options: pool.options,
    end: () => pool.end(),
    connect: async () => {
      try {
        return toClient({ client: await pool.connect(), place, readOnly })
      } catch (cause) {
        throw toPostgresError({ place, cause })
      }
    },
  }
}

function toClient({ client, place, readOnly }: { client: PoolClient; place: string; readOnly: boolean }) {
  let isLost = false
  let isTransaction = false
  let failure: unknown
  const run = async (text: string, parameters: readonly unknown[]) => {
    if (readOnly && !isReading(text)) throw readOnlyState({ place, cause: text })
    try {
      const result = await client.query(text, [...parameters])
      failure = undefined
      return result
    } catch (cause) {
      // After a failed statement, PostgreSQL says of the others only that the transaction has failed.
      failure = isConsequence(cause) ? failure : toPostgresError({ place, cause })
      // The connection is of no more use then.
      isLost ||= failure instanceof StateAwayError
      throw failure
    }
  }
  const query = (text: string, parameters: readonly unknown[]) => {
    isTransaction ||= text.startsWith('begin')
    // Without one, each statement is a transaction of its own, at the level that the user has.
    return isTransaction ? run(text, parameters) : retryConflicts(() => run(text, parameters))
  }
  const release = (destroy = false) => client.release(destroy || isLost)
  return { query, release } as unknown as PostgresPoolClient
}

const isReading = (text: string) => /^\s*(select|begin|commit|rollback)\b/i.test(text)

/** 64-bit integers and sums arrive as text. */
const toNumber = (text: string): number => {
  const value = Number(text)
  if (Math.abs(value) > Number.MAX_SAFE_INTEGER)
    throw new RangeError(`a number of the state is too large: ${text}`)
  return value
}

const stateTypes = new TypeOverrides()
stateTypes.setTypeParser(types.builtins.INT8, toNumber)
stateTypes.setTypeParser(types.builtins.NUMERIC, toNumber)

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
    /^(Connection terminated|timeout exceeded|timeout expired|Query read timeout|Client has encountered|Client was closed|The server does not support SSL|There was an error establishing an SSL|Postgres connection has been discarded)/.test(
      cause.message,
    ))

/** Whether a statement failed because an earlier one of its transaction did. */
const isConsequence = (error: unknown): boolean => error instanceof DatabaseError && error.code === '25P02'
