import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { FolderLockedError } from '../../core/state/data-folder-lock.ts'
import type { StatePlace } from '../../core/state/open.ts'
import { acquireLock, readHolder } from '../../core/state/data-folder-lock.ts'
import { readStateFile } from '../../core/state/sqlite.ts'
import { freeBytes, leastFreeBytes } from '../../core/storage/system-errors.ts'
import { prepareDataFolder } from '../../worker/data-folder.ts'
import { shell } from '../../core/runs/view/shell.ts'
import { findChanged, type Settings } from '../../worker/settings/settings.ts'
import { findExposed } from '../../worker/settings/checks.ts'
import { fine, wrong, type Finding } from './finding.ts'

/** Checks that the data folder is writable and private, has room, and is not in use elsewhere. */
export async function checkFolder(options: {
  place: StatePlace
  taskQueue: string
  /** Whether a worker of this folder listens on the task queue. */
  served: boolean
  /** The settings that take effect only at a start. */
  fixed: Settings['fixed']
}): Promise<Finding[]> {
  const { place, taskQueue, served, fixed } = options
  const dataDir = place.folder
  await prepareDataFolder(dataDir)
  if (findExposed([dataDir], 0o077).length > 0)
    return [
      wrong(
        'data folder',
        `Other users of this machine can use the data folder ${dataDir}, which holds every row and the ledger. Fix it with \`${shell`chmod 700 ${dataDir}`}\`.`,
      ),
    ]
  // A state on PostgreSQL has a check of its own.
  const isHere = ['state.db', 'moved.json'].some((name) => existsSync(join(dataDir, name)))
  if (place.database === undefined && isHere) readStateFile(dataDir)
  const free = await freeBytes(dataDir)
  const freeMb = Math.floor(free / 1e6)
  if (free < leastFreeBytes)
    return [
      wrong(
        'data folder',
        `Only ${freeMb} MB are free on the disk of the data folder ${dataDir}. Free some, or set CONNECTOR_DATA_DIR to a folder on another disk.`,
      ),
    ]
  const holder = served ? undefined : findHolder(dataDir)
  if (holder !== undefined)
    return [
      wrong(
        'data folder',
        `The data folder ${dataDir} is in use by ${holder}, which does not answer on ${taskQueue}: it is still starting, has ` +
          'other settings, uses another Temporal server, or is frozen. Try again in a few seconds. Otherwise end it, or give one of the two another CONNECTOR_DATA_DIR.',
      ),
    ]
  return [
    fine('data folder', `${dataDir} is writable; ${freeMb.toLocaleString('en-US')} MB are free.`),
    ...checkStarted({ dataDir, fixed }),
  ]
}

/** Compares the settings with those of the worker, which reads them once. */
function checkStarted({ dataDir, fixed }: { dataDir: string; fixed: Settings['fixed'] }): Finding[] {
  const { settings, pid } = readHolder(dataDir) ?? {}
  const changed = settings === undefined ? [] : findChanged(settings, fixed)
  if (changed.length === 0) return []
  return [
    wrong(
      'worker',
      `The worker with pid ${pid} was started with other settings: ${changed.join(', ')}. Restart it, so that they take effect.`,
    ),
  ]
}

/** The process that has locked the folder, found by trying to acquire the lock for an instant. */
function findHolder(folder: string): string | undefined {
  try {
    acquireLock({ folder, role: 'check' }).release()
    return undefined
  } catch (error) {
    if (!(error instanceof FolderLockedError)) throw error
    const { holder } = error
    return holder === undefined ? 'another process' : `the ${holder.role} with pid ${holder.pid}`
  }
}
