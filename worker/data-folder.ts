import { mkdir, open, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { WorkerLock } from '../core/state/data-folder-lock.ts'
import { beatEveryMs, type Membership } from '../core/state/postgres/membership.ts'
import { isSystemError, refusalOf } from '../core/storage/system-errors.ts'

/** The data folder cannot be written; nothing was started. */
export class DataFolderError extends Error {
  override readonly name = 'DataFolderError'
  readonly exitCode = 2
  readonly hint = 'Fix this, or set CONNECTOR_DATA_DIR to another folder.'
}

/** Bytes to write: one block, which a full disk cannot store. */
const probeBytes = 4096

/**
 * Creates the data folder for this user only, and writes and removes a small file in it: permissions do not show a full
 * disk, nor, to root, a read-only one.
 * @throws {DataFolderError}
 */
export async function prepareDataFolder(dataDir: string): Promise<void> {
  const path = join(dataDir, `.can-write-${process.pid}`)
  try {
    await mkdir(dataDir, { recursive: true, mode: 0o700 })
    const file = await open(path, 'w')
    try {
      await file.writeFile(Buffer.alloc(probeBytes))
      await file.sync()
    } finally {
      await file.close()
      await rm(path)
    }
  } catch (cause) {
    if (!isSystemError(cause)) throw cause
    const why = refusalOf(cause) ?? cause.message
    throw new DataFolderError(`The data folder ${dataDir} can't be written: ${why} (${cause.code}).`, {
      cause,
    })
  }
}

/** The same as the heartbeat. */
const lockCheckMs = 1_000

/** Calls `onLost` once if the lock is no longer held. */
export function watchLock({ lock, onLost }: { lock: WorkerLock; onLost: () => void }) {
  const watch = {
    isLost: false,
    [Symbol.dispose]: () => clearInterval(timer),
  }
  const timer = setInterval(() => {
    if (watch.isLost || lock.isHeld()) return
    watch.isLost = true
    onLost()
  }, lockCheckMs)
  return watch
}

/** Says at intervals that the worker is alive. */
export function keepBeating(membership: Membership | undefined): Disposable {
  // PostgreSQL may be away.
  const beat = () => void membership?.beat().catch(() => undefined)
  const timer = setInterval(beat, beatEveryMs)
  return { [Symbol.dispose]: () => clearInterval(timer) }
}
