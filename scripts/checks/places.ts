import { RefusedError, toFailure } from '../terminal/failures.ts'
import { findExposed, type Settings, tellReadableSecrets } from '../../worker/settings/settings.ts'
import { createFolderMark, refuseOlderThanMark } from '../../core/state/claims-mark.ts'
import type { StatePlace } from '../../core/state/open.ts'
import { acquireLock, FolderLockedError } from '../../core/state/data-folder-lock.ts'
import { freeBytes, leastFreeBytes } from '../../core/storage/system-errors.ts'
import { prepareDataFolder } from '../../worker/data-folder.ts'
import { shell } from '../../core/runs/view/shell.ts'
import { askState } from '../runs/run-files.ts'

import { proveStore } from '../../core/storage/prove-store.ts'
import { openFiles } from '../../worker/files.ts'

/** The result of one check. */
export interface Finding {
  check: string
  /** `notRunning`: nothing is wrong, but no server runs; commands with `--local` work. */
  status: 'ok' | 'notRunning' | 'wrong'
  message: string
}

export const fine = (check: string, message: string): Finding => ({ check, status: 'ok', message })
export const wrong = (check: string, message: string): Finding => ({ check, status: 'wrong', message })

/** Runs a check that says what is fine; one that throws becomes a finding with the error's own message. */
export async function runCheck(check: string, run: () => Promise<string | Finding[]>): Promise<Finding[]> {
  try {
    const found = await run()
    return typeof found === 'string' ? [fine(check, found)] : found
  } catch (error) {
    const { message, hint } = toFailure(error)
    const sentences = [message, hint].filter((part) => part !== null).map(toSentence)
    return [wrong(check, sentences.join(' '))]
  }
}

/** Turns an error message into a sentence: after a colon, messages begin in lower case and have no full stop. */
function toSentence(text: string): string {
  const ended = /[.!?]$/.test(text) ? text : `${text}.`
  return ended.replace(/^[a-z]/, (letter) => letter.toUpperCase())
}

/** Checks that only this user can read the files with secrets. */
export function checkSecrets(settings: Settings): string | Finding[] {
  const { secretFiles } = settings
  const problem = tellReadableSecrets(settings)
  if (problem !== undefined) throw new RefusedError(problem)
  return secretFiles.length === 0 ? [] : `Nobody else can read ${secretFiles.join(', ')}.`
}

/** Checks that the data folder is writable and private, has room, and is not in use elsewhere. */
export async function checkFolder(options: {
  place: StatePlace
  taskQueue: string
  /** Whether a worker of this folder listens on the task queue. */
  served: boolean
}): Promise<string> {
  const { place, taskQueue, served } = options
  const dataDir = place.folder
  await prepareDataFolder(dataDir)
  if (findExposed([dataDir], 0o077).length > 0)
    throw new RefusedError(
      `Other users of this machine can use the data folder ${dataDir}, which holds every row and the ledger. Fix it with \`${shell`chmod 700 ${dataDir}`}\`.`,
    )
  // A state on PostgreSQL has a check of its own.
  const claimed = async () => (await askState(place, ({ ledger }) => ledger.claimed())) ?? 0
  if (place.database === undefined)
    await refuseOlderThanMark({ ledger: { claimed }, mark: createFolderMark(dataDir) })
  const free = await freeBytes(dataDir)
  const freeMb = Math.floor(free / 1e6)
  if (free < leastFreeBytes)
    throw new RefusedError(
      `Only ${freeMb} MB are free on the disk of the data folder ${dataDir}. Free some, or set CONNECTOR_DATA_DIR to a folder on another disk.`,
    )
  const holder = served ? undefined : findHolder(dataDir)
  if (holder !== undefined)
    throw new RefusedError(
      `The data folder ${dataDir} is in use by ${holder}, which does not answer on ${taskQueue}: it is still starting, has ` +
        'other settings, uses another Temporal server, or is frozen. Try again in a few seconds. Otherwise end it, or give one of the two another CONNECTOR_DATA_DIR.',
    )
  return `${dataDir} is writable; ${freeMb.toLocaleString('en-US')} MB are free.`
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

const removesNothing =
  'The credentials do not permit removing: `prune` will fail there, and what imports no longer need will stay. Grant s3:DeleteObject if that is not intended.'

/** Checks that the bucket of CONNECTOR_FILES_URL can be used, and that it honours the conditions of writes. */
export async function checkFiles(settings: Pick<Settings, 'filesUrl' | 's3'>): Promise<Finding[]> {
  const files = openFiles(settings)
  if (files === undefined) return []
  return runCheck('bucket', async () => {
    const { mayRemove } = await proveStore(files)
    const usable = `${files.locate('')} is writable and honours If-None-Match and If-Match.`
    return mayRemove ? usable : `${usable} ${removesNothing}`
  })
}

/** Checks that the PostgreSQL warehouse is writable and belongs to this workspace and mode. */
export async function checkWarehouse({ billing, warehouseUrl }: Settings): Promise<Finding[]> {
  if (warehouseUrl === undefined) return []
  return await runCheck('warehouse', async () => {
    // Loaded late: most data folders have no warehouse.
    const { createPostgresDestination } = await import('../../core/destinations/postgres/postgres.ts')
    const warehouse = createPostgresDestination({ url: warehouseUrl })
    await warehouse.tryOut(billing)
    return `The warehouse in ${warehouse.locate(billing)} is writable.`
  })
}
