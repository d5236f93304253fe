import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { StateUnreadableError } from './errors.ts'
import { StateMovedError, StateNotMovedError } from './place-errors.ts'
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
    throw new StateUnreadableError({ file: movedNoteOf(folder), cause: error })
  }
}

/**
 * Refuses a folder whose state is elsewhere; gives the note of one that was moved to PostgreSQL.
 *
 * @throws {StateMovedError} its state was moved, and the settings name no database
 * @throws {StateNotMovedError} the settings name one, and the folder has a state of its own
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
    if (note !== undefined) throw new StateMovedError({ folder, ...note })
    return undefined
  }
  if (note === undefined && existsSync(join(folder, 'state.db'))) throw new StateNotMovedError({ folder })
  return note
}
