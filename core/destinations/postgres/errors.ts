import { DatabaseError } from 'pg'
import { isSystemError } from '../../storage/system-errors.ts'
import {
  ChangedTableError,
  repeatedRow,
  WarehouseAwayError,
  UnwritableError,
  WarehouseRefusedError,
} from '../errors.ts'

/**
 * Only `publish` leaves something. `read` and `compare`, which has temporary tables, see one state of the database; `try`
 * finds out what may be published.
 */
export type Purpose = 'publish' | 'try' | 'read' | 'compare'

interface Failure {
  error: DatabaseError
  where: string
  mayWrite: boolean
  /** What is as it was, and what to do then. */
  nothing: string
  again: string
}

interface Meaning {
  as: typeof ChangedTableError | typeof WarehouseAwayError | typeof WarehouseRefusedError
  say: (failure: Failure) => string
  /** Messages of this kind, of PostgreSQL or of a trigger, contain a row: they are not passed on. */
  hasRow?: true
}

const login: Meaning = {
  as: WarehouseRefusedError,
  say: ({ error, where, nothing }) =>
    `PostgreSQL refuses the login to ${where}: ${error.message}. ${nothing}; correct WAREHOUSE_URL, and restart the worker.`,
}

const locked: Meaning = {
  as: WarehouseAwayError,
  say: ({ error, where, nothing, again }) =>
    `Someone else has locked the tables of ${where}: ${error.message}. ${nothing}; ${again} when they are done.`,
}

const rule: Meaning = {
  as: ChangedTableError,
  say: ({ error: { table, constraint, column, code }, where, nothing }) =>
    `A rule that someone put on a table of ${where} keeps rows out` +
    ` (${[table, constraint, column].filter(Boolean).join(', ') || `code ${code}`}). ${nothing}: remove it.`,
  hasRow: true,
}

const changed: Meaning = {
  as: ChangedTableError,
  say: ({ error, where, nothing }) =>
    `Rows can't be merged into ${where}: ${error.message}. ${nothing}; if someone changed its tables, change them back.`,
}

const unknown: Meaning = {
  as: WarehouseAwayError,
  say: ({ error, where, nothing, again }) =>
    `PostgreSQL failed for ${where}: ${error.message} (${error.code}). ${nothing}; ${again}.`,
}

/** Codes, and their classes, which are the first two characters (PostgreSQL, appendix A). */
const meanings: Readonly<Record<string, Meaning>> = {
  '28': login,
  '3D': login,
  '25006': {
    as: WarehouseRefusedError,
    say: ({ error, where, nothing }) =>
      `PostgreSQL is read-only for ${where}: ${error.message}. ${nothing}; name the primary server and a user that may write in WAREHOUSE_URL.`,
  },
  '40': locked,
  '55': locked,
  '23': rule,
  '2B': rule,
  P0: rule,
  '54': {
    as: WarehouseRefusedError,
    say: ({ error, where, nothing }) =>
      `${where} can't hold a value: ${error.message}. ${nothing}; leave the field out (--exclude), or drop an index of your own on it.`,
  },
  '22': {
    as: ChangedTableError,
    say: ({ error: { code, column }, where, nothing }) =>
      `${where} can't take a value (code ${code}${column === undefined ? '' : `, column ${column}`}). ${nothing}.`,
    hasRow: true,
  },
  '42501': {
    as: WarehouseRefusedError,
    say: ({ error, where, nothing, mayWrite }) =>
      `PostgreSQL denies access to ${where}: ${error.message}. ${nothing}; the user needs the` +
      (mayWrite
        ? ' right to create and use tables in that schema (and to create it, if it is not there), to own those that are' +
          ' there, and to create temporary tables.'
        : ' right to select from the tables of that schema, and to create temporary tables to compare them.'),
  },
  '42': changed,
  '0A': changed,
}

/** What is as it was after a failure, and what to do then. */
const outcomes: Readonly<Record<Purpose, readonly [nothing: string, again: string]>> = {
  publish: ['Nothing of this export was published', 'publish the run again'],
  try: ['Nothing was written', 'check again'],
  read: ['Nothing was read', 'try again'],
  compare: ['Nothing was compared', 'try again'],
}

/** The driver gives these errors no class and no code. */
const isLostConnection = (error: unknown): error is Error =>
  error instanceof Error &&
  /^(Connection terminated|timeout expired|Client (has encountered|was closed)|The server does not support SSL|There was an error establishing an SSL)/.test(
    error.message,
  )

/** What the server's operating system rejected: PostgreSQL has a code of its own only for a full disk. */
const systemCode = ({ code, message }: DatabaseError) =>
  code === '53100' ? 'ENOSPC' : message.endsWith('File too large') ? 'EFBIG' : 'EIO'

/** Maps an error of PostgreSQL, or of the connection, to a publication error; returns other errors unchanged. */
export function toPostgresError(error: unknown, place: { where: string; purpose: Purpose }): unknown {
  const { where, purpose } = place
  const [nothing, again] = outcomes[purpose]
  if (error instanceof DatabaseError) {
    const { code = '', message } = error
    // These quote rows (COPY's names the line it was at), and would go wherever the error is shown as a cause.
    error.detail = undefined
    error.where = undefined
    // `on conflict` found two rows for one place. PostgreSQL does not say in which table.
    if (code === '21000') return repeatedRow('a table')
    if (/^could not (extend|write|create|open) /.test(message))
      return new UnwritableError({
        where,
        cause: Object.assign(new Error(message), { code: systemCode(error) }),
      })
    // PL/pgSQL's `raise` may use any code.
    const isRaised = error.routine === 'exec_stmt_raise'
    const { as, say, hasRow } = isRaised ? rule : (meanings[code] ?? meanings[code.slice(0, 2)] ?? unknown)
    const sentence = say({
      error,
      where,
      nothing,
      again,
      mayWrite: purpose === 'publish' || purpose === 'try',
    })
    return new as(sentence, hasRow ? {} : { cause: error })
  }
  if (isSystemError(error) || isLostConnection(error))
    return new WarehouseAwayError(
      `Can't reach PostgreSQL for ${where}: ${error.message}. ${nothing}; start it, or correct WAREHOUSE_URL, and ${again}.`,
      { cause: error },
    )
  return error
}
