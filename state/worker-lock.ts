import { mkdirSync, readFileSync, renameSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { FolderLockedError, StateBusyError, type LockHolder, toStateError } from './errors.ts'

/** Holds a data folder for one process. */
export interface WorkerLock {
  /** Gives the folder free. The end of the process does so too, however it ends. */
  release(): void
  /** False where the file it holds is no longer the folder's: deleted, or the folder is not there any more. */
  isHeld(): boolean
}

/**
 * Takes the data folder for this process, for life.
 *
 * The lock is an exclusive transaction on an SQLite file of its own: the operating system holds it for the
 * process, so a frozen holder keeps it and a killed one loses it at once. Nothing overtakes it, no lease runs
 * out: a sender that is frozen and wakes up must never find a second one at work.
 *
 * Throws FolderLockedError, with the holder's pid and start, where another process has it.
 */
export function acquireLock({ folder, role }: { folder: string; role: string }): WorkerLock {
  const file = join(folder, 'worker.lock')
  const database = takeExclusively({ folder, file })
  // POSIX locks go with the first close of *any* descriptor of a file, so nothing else here ever opens
  // worker.lock: who holds it stands in a note beside it.
  writeNote({ folder, holder: { pid: process.pid, role, startedAt: startOfProcess() } })
  held.add(database)
  const { ino } = statSync(file)
  return {
    isHeld: () => database.isOpen && statSync(file, { throwIfNoEntry: false })?.ino === ino,
    release: () => {
      held.delete(database)
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
    return database
  } catch (cause) {
    database?.close()
    const error = toStateError({ file, cause })
    throw error instanceof StateBusyError
      ? new FolderLockedError({ folder, holder: readNote(folder) })
      : error
  }
}

const startOfProcess = () => new Date(Math.round(performance.timeOrigin)).toISOString()
const noteOf = (folder: string) => join(folder, 'worker.lock.json')

function writeNote({ folder, holder }: { folder: string; holder: LockHolder }) {
  const fresh = `${noteOf(folder)}.${process.pid}`
  writeFileSync(fresh, `${JSON.stringify(holder)}\n`)
  renameSync(fresh, noteOf(folder))
}

/** The last holder's note, if there is a readable one. It says who took the folder last, not that it is held. */
function readNote(folder: string): LockHolder | undefined {
  try {
    const note: unknown = JSON.parse(readFileSync(noteOf(folder), 'utf8'))
    return isHolder(note) ? note : undefined
  } catch {
    return undefined
  }
}

function isHolder(note: unknown): note is LockHolder {
  return (
    typeof note === 'object' &&
    note !== null &&
    'pid' in note &&
    typeof note.pid === 'number' &&
    'role' in note &&
    typeof note.role === 'string' &&
    'startedAt' in note &&
    typeof note.startedAt === 'string'
  )
}
