import { mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { StateBusyError, StateError, diskFull, toStateError } from './errors.ts'
import { identify, isAlive } from './process-identity.ts'
import { isSystemError } from '../storage/system-errors.ts'

/** The holder of a data folder, from the note beside the lock. */
export interface LockHolder {
  pid: number
  /** The start time of the process according to the system; distinguishes it from a later one with the same pid. */
  startTime?: string | undefined
  role: string
  /** ISO 8601, the holder's clock. */
  startedAt: string
}

/** A running process already holds the data folder. */
export class FolderLockedError extends StateError {
  readonly holder: LockHolder | undefined
  constructor({ folder, holder }: { folder: string; holder: LockHolder | undefined }) {
    const owner =
      holder === undefined
        ? 'another process'
        : `the ${holder.role} with pid ${holder.pid}, started ${holder.startedAt}`
    super(
      'FolderLockedError',
      `The data folder ${folder} is in use by ${owner}. Only one process may use it: end that one first, ` +
        `or choose another CONNECTOR_DATA_DIR. A suspended process still holds its folder.`,
    )
    this.holder = holder
  }
}

/** Holds a data folder for one process. */
export interface WorkerLock {
  /** Releases the folder. The end of the process does so too, however it ends. */
  release(): void
  /**
   * False if the locked file is no longer in the folder: it was removed or replaced, or the folder is gone.
   * Another process can then lock the new file, so this one must stop.
   */
  isHeld(): boolean
}

/**
 * Takes the data folder for this process, for life.
 *
 * The lock is an exclusive transaction on an SQLite file of its own: the operating system holds it for the process, so a
 * suspended holder keeps it and a killed one loses it at once. It never expires: a sender that was suspended and
 * continues must never find a second one at work.
 *
 * Removing the file removes the lock, so a running process named by the note also keeps the folder.
 *
 * @throws {FolderLockedError} with the holder's pid and start, when another process has it
 * @throws {StateError} when there is no room for the note
 */
export function acquireLock(options: Pick<LockHolder, 'role'> & { folder: string }): WorkerLock {
  const { folder } = options
  const file = join(folder, 'worker.lock')
  const database = takeExclusively({ folder, file })
  const locked = fileIdentity(file)
  // POSIX locks are released when *any* descriptor of the file is closed, so nothing else here ever opens
  // worker.lock: a note beside it names the holder.
  try {
    writeNote(options)
  } catch (error) {
    database.close()
    throw error
  }
  held.add(database)
  const isHeld = () => database.isOpen && locked !== undefined && fileIdentity(file) === locked
  return {
    isHeld,
    release: () => {
      held.delete(database)
      if (isHeld()) rmSync(noteOf(folder), { force: true })
      database.close()
    },
  }
}

/** A collected DatabaseSync closes its file, and the lock with it: a caller that drops its lock keeps the folder. */
const held = new Set<DatabaseSync>()

function takeExclusively({ folder, file }: { folder: string; file: string }): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    mkdirSync(folder, { recursive: true })
    database = new DatabaseSync(file, { timeout: 0 })
    database.exec('begin exclusive')
    const holder = readNote(folder)
    if (holder !== undefined && holdsWithoutFile(holder)) throw new FolderLockedError({ folder, holder })
    return database
  } catch (cause) {
    database?.close()
    const error = toStateError({ place: file, cause })
    throw error instanceof StateBusyError
      ? new FolderLockedError({ folder, holder: readNote(folder) })
      : error
  }
}

/** Another process took the folder and is still running, but its lock file was removed. A normal exit removes the note. */
const holdsWithoutFile = ({ pid, startTime }: LockHolder) =>
  pid !== process.pid && startTime !== undefined && isAlive({ pid, startTime })

/** Undefined if there is no such file. The inode number is not reused while a process has the file open. */
function fileIdentity(file: string): string | undefined {
  try {
    const { dev, ino } = statSync(file)
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
}

const startOfProcess = () => new Date(Math.round(performance.timeOrigin)).toISOString()
const noteOf = (folder: string) => join(folder, 'worker.lock.json')

function writeNote({ folder, ...note }: Pick<LockHolder, 'role'> & { folder: string }) {
  const { startTime } = identify(process.pid) ?? {}
  const holder: LockHolder = { pid: process.pid, startTime, ...note, startedAt: startOfProcess() }
  const fresh = `${noteOf(folder)}.${process.pid}`
  try {
    writeFileSync(fresh, `${JSON.stringify(holder)}\n`)
    renameSync(fresh, noteOf(folder))
  } catch (cause) {
    rmSync(fresh, { force: true })
    throw isSystemError(cause, 'ENOSPC') ? diskFull({ place: noteOf(folder), cause }) : cause
  }
}

/** The last holder's note, if readable. It names the last process that took the folder; the lock may be free. */
function readNote(folder: string): LockHolder | undefined {
  try {
    const note = JSON.parse(readFileSync(noteOf(folder), 'utf8')) as LockHolder | null
    return typeof note?.pid === 'number' ? note : undefined
  } catch {
    return undefined
  }
}
