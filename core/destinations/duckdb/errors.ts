import { isSystemError } from '../../storage/system-errors.ts'
import { BusyWarehouseError, ChangedTableError, UnwritableError, WarehouseRefusedError } from '../errors.ts'

/** Maps a DuckDB error to a publication error; returns other errors unchanged. */
export function toDuckDbError(error: unknown, place: { path: string; readOnly?: boolean }): unknown {
  const { path, readOnly = false } = place
  const again = readOnly ? 'try again' : 'publish the run again'
  if (isSystemError(error)) return new UnwritableError({ where: path, cause: error })
  if (!(error instanceof Error) || error.name !== 'Error') return error
  const [said = ''] = error.message.split('\n')
  if (/Could not set lock|Conflicting lock|already open/i.test(said)) {
    const holder = /held in (.*? \(PID \d+\))/.exec(error.message)?.[1]
    return new BusyWarehouseError(
      `${path} is held by another process${holder === undefined ? '' : `: ${holder}`}. DuckDB lets in one at a` +
        ` time: end it, and ${again}.`,
      { cause: error },
    )
  }
  const code = systemCode(said)
  if (code !== undefined)
    return new UnwritableError({ where: path, cause: Object.assign(new Error(said), { code }) })
  if (/not a valid DuckDB|serialization|version number/i.test(said))
    return new WarehouseRefusedError(
      `${path} is not a database that this version of DuckDB reads (${said}). Move it away, and ${again}.`,
      { cause: error },
    )
  if (said.startsWith('Out of Memory Error'))
    return new WarehouseRefusedError(
      `${path} can't take these rows in the memory that DuckDB has: one of them may be too long. Leave the field out` +
        ' (--exclude), and run the export again.',
      { cause: error },
    )
  if (/^(Constraint|Conversion|Invalid Input|Out of Range) Error/.test(said))
    // DuckDB's messages for these contain a value.
    return new ChangedTableError(
      `Rows can't be merged into ${path}: a rule or a type of its tables keeps one out (${said.split(':')[0]}). Nothing was written: change back what was changed.`,
    )
  if (/^(Dependency|Catalog|Binder) Error/.test(said))
    return new ChangedTableError(
      `Rows can't be merged into ${path}: someone changed its tables (${said}). Nothing was written: change them back.`,
      { cause: error },
    )
  return error
}

/** The system error code in a DuckDB message. */
function systemCode(said: string): string | undefined {
  if (!/^IO Error|Failed to commit|Could not write|FATAL Error/.test(said)) return undefined
  const [, code] = systemWords.find(([words]) => words.test(said)) ?? []
  return code
}

const systemWords: readonly [RegExp, string][] = [
  [/No space left/i, 'ENOSPC'],
  [/File too large/i, 'EFBIG'],
  [/Read-only file system/i, 'EROFS'],
  [/Permission denied/i, 'EACCES'],
  [/Disk quota/i, 'EDQUOT'],
]
