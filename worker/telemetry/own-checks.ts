import type { WorkerLock } from '../../core/state/data-folder-lock.ts'
import type { SharedStore } from '../../core/state/open.ts'
import { findWorkers } from '../../core/state/postgres/membership.ts'
import { freeBytes, leastFreeBytes } from '../../core/storage/system-errors.ts'
import type { Check } from './readiness.ts'

/** Whether the worker still holds its data folder. */
export const lockCheck = ({ lock, dataDir }: { lock: WorkerLock; dataDir: string }) =>
  lock.isHeld()
    ? { ok: true, message: `holds ${dataDir}` }
    : { ok: false, message: `the lock of ${dataDir} was removed or replaced: restart the worker` }

/** Whether the state on PostgreSQL answers. @throws the state's error if it does not */
export async function stateCheck(shared: SharedStore): Promise<Check> {
  const { length } = await findWorkers(shared)
  return {
    ok: true,
    message: `${shared.place} answers; ${length} ${length === 1 ? 'worker uses' : 'workers use'} it`,
  }
}

/** Whether the disk of the data folder has room. */
export async function diskCheck(dataDir: string): Promise<Check> {
  const free = await freeBytes(dataDir)
  const message = `${Math.floor(free / 1e6)} MB are free on the disk of ${dataDir}`
  return free < leastFreeBytes
    ? { ok: false, message: `only ${message}: free some space` }
    : { ok: true, message }
}
