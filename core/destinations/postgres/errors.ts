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
 * Maps an error of PostgreSQL, or of the connection, to a publication error; returns other errors unchanged.
 */
export function toPostgresError(error: unknown, place: { where: string; isPublishing: boolean }): unknown {
  const { where, isPublishing } = place
  const ended = isPublishing
    ? { nothing: 'Nothing of this export was published', again: 'publish the run again' }
    : { nothing: 'Nothing was compared', again: 'try again' }
  if (error instanceof DatabaseError) {
    // These quote rows (COPY's names the line it was at), and would go wherever the error is shown as a cause.
    error.detail = undefined
    error.where = undefined
    return toRefusal(error, { where, isPublishing, ...ended })
  }
  if (isSystemError(error) || isLostConnection(error))
    return new WarehouseAwayError(
      `Can't reach PostgreSQL for ${where}: ${error.message}. ${ended.nothing}; when the server is there, ${ended.again}.`,
      { cause: error },
    )
  return error
}

/** The driver gives these errors no class and no code. */
const isLostConnection = (error: unknown): error is Error =>
  error instanceof Error &&
  /^(Connection terminated|timeout expired|Client (has encountered|was closed)|The server does not support SSL)/.test(
    error.message,
  )

/** What the server's operating system rejected: PostgreSQL has a code of its own only for a full disk. */
const systemCode = ({ code, message }: DatabaseError) =>
  code === '53100' ? 'ENOSPC' : message.endsWith('File too large') ? 'EFBIG' : 'EIO'

/** Maps a code by its class, the first two characters (PostgreSQL, appendix A). */
function toRefusal(
  error: DatabaseError,
  words: { where: string; nothing: string; again: string; isPublishing: boolean },
): unknown {
  const { where, nothing, again, isPublishing } = words
  const { code = '', message } = error
  // `on conflict` found two rows for one place. PostgreSQL does not say in which table.
  if (code === '21000') return repeatedRow('a table')
  if (/^could not (extend|write|create|open) /.test(message))
    return new UnwritableError({
      where,
      cause: Object.assign(new Error(message), { code: systemCode(error) }),
    })
  switch (code.slice(0, 2)) {
    case '28':
    case '3D':
      return new WarehouseRefusedError(
        `PostgreSQL refuses the login to ${where}: ${message}. ${nothing}; correct WAREHOUSE_URL, and restart the worker.`,
        { cause: error },
      )
    case '25':
      if (code !== '25006') break
      return new WarehouseRefusedError(
        `PostgreSQL is read-only for ${where}: ${message}. ${nothing}; name the primary server and a user that may write in WAREHOUSE_URL.`,
        { cause: error },
      )
    case '55':
    case '40':
      return new WarehouseAwayError(
        `Someone else has locked the tables of ${where}: ${message}. ${nothing}; ${again} when they are done.`,
        { cause: error },
      )
    case '23':
    case '2B':
    case 'P0':
      // The messages of PostgreSQL, or of a trigger, for these contain a row.
      return new ChangedTableError(
        `A rule that someone put on a table of ${where} keeps rows out` +
          ` (${[error.table, error.constraint, error.column].filter(Boolean).join(', ') || `code ${code}`}). ${nothing}: remove it.`,
      )
    case '54':
      return new WarehouseRefusedError(
        `${where} can't hold a value: ${message}. ${nothing}; leave the field out (--exclude), or drop an index of your own on it.`,
        { cause: error },
      )
    case '22':
      return new ChangedTableError(
        `${where} can't take a value (code ${code}${error.column === undefined ? '' : `, column ${error.column}`}). ${nothing}.`,
      )
    case '42':
    case '0A':
      return code === '42501'
        ? new WarehouseRefusedError(
            `PostgreSQL denies access to ${where}: ${message}. ${nothing}; the user needs the` +
              (isPublishing
                ? ' right to create and use tables in that schema (and to create it, if it is not there).'
                : ' right to select from the tables of that schema, and to create temporary tables to compare them.'),
            { cause: error },
          )
        : new ChangedTableError(
            `Rows can't be merged into ${where}: ${message}. ${nothing}; if someone changed its tables, change them back.`,
            { cause: error },
          )
  }
  return new WarehouseAwayError(
    `PostgreSQL failed for ${where}: ${message} (${code}). ${nothing}; ${again}.`,
    { cause: error },
  )
}
