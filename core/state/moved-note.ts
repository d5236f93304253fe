import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StateError, StateUnreadableError } from './errors.ts'
import { isSystemError } from '../storage/system-errors.ts'

/** `moved.json` of a data folder: its state is on PostgreSQL. */
export interface MovedNote {
  /** The schema and server, without user and password. */
  to: string
  /** `State.storeId`, which moved along. */
  store: string
  /** ISO 8601. */
  at: string
}

export const movedNoteOf = (folder: string) => join(folder, 'moved.json')

export function readMovedNote(folder: string): MovedNote | undefined {
  try {
    // The connector has written it; whatever else is there must not look like a folder that was never moved.
    return JSON.parse(readFileSync(movedNoteOf(folder), 'utf8')) as MovedNote
  } catch (error) {
    if (isSystemError(error, 'ENOENT') || isSystemError(error, 'ENOTDIR')) return undefined
    throw new StateUnreadableError({ place: movedNoteOf(folder), cause: error })
  }
}

/**
 * Refuses a folder whose state is elsewhere; gives the note of one that was moved to PostgreSQL.
 *
 * @throws {StateError} its state was moved, and the settings name no database; or they name one, and the folder has a state
 * of its own
 */
export function refuseMoved({
  folder,
  database,
}: {
  folder: string
  database?: object | undefined
}): MovedNote | undefined {
  const note = readMovedNote(folder)
  if (database === undefined) {
    if (note === undefined) return undefined
    throw new StateError(
      'StateMovedError',
      `The state of the data folder ${folder} was moved to ${note.to} at ${note.at}: set CONNECTOR_STATE_URL to that ` +
        'database. The state.db left behind does not know what was sent since.',
    )
  }
  if (note === undefined && existsSync(join(folder, 'state.db')))
    throw new StateError(
      'StateNotMovedError',
      `The data folder ${folder} has a state of its own (state.db), which knows what was sent. Move it to PostgreSQL with ` +
        '`connector state move`, or unset CONNECTOR_STATE_URL.',
    )
  return note
}
