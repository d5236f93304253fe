import { hostname } from 'node:os'
import { OtherFolderError, SecondWorkerError } from '../place-errors.ts'
import type { SharedStore } from '../open.ts'
import { type FolderId, readFolderId, takeFolderId } from './folder-id.ts'

/** A worker's use of a state on PostgreSQL. */
export interface Membership extends AsyncDisposable {
  /** Says that the worker is alive; false if another worker has taken its place, after none of these for half a minute. */
  beat(): Promise<boolean>
}

/** A worker that was last seen longer ago has ended, or is frozen. */
const seenWithinMs = 30_000
export const beatEveryMs = 5_000

export const workerName = () => `${process.pid}@${hostname()}`

/** A worker that uses a state on PostgreSQL. */
export interface SeenWorker {
  /** `pid@host`. */
  worker: string
  /** Its data folder and machine, for people. */
  folder: string
  /** How long ago it was seen, in ms. */
  ms: number
}

/** The workers that a state has seen in the last half minute. */
export async function findWorkers({ db, now }: Omit<SharedStore, 'place'>): Promise<SeenWorker[]> {
  const at = now()
  const rows = await db
    .selectFrom('workers')
    .selectAll()
    .where('seen_at', '>', at - seenWithinMs)
    .orderBy('worker')
    .execute()
  return rows.map(({ worker, files_place: folder, seen_at }) => ({
    worker,
    folder,
    ms: Math.max(0, at - seen_at),
  }))
}

/**
 * Joins a state on PostgreSQL as its only worker: the files of a run are in one data folder, so no other folder may be used
 * with it. The first worker binds the state to its folder.
 *
 * @throws {OtherFolderError} the state belongs to another data folder
 * @throws {SecondWorkerError} a worker with a copy of the folder uses it
 */
export async function joinStore(options: {
  store: SharedStore
  folder: string
  /** Tests: other workers use the same folder. */
  sharesFolder?: boolean | undefined
}): Promise<Membership> {
  const { store, folder, sharesFolder = false } = options
  const { db, now, place } = store
  const id = takeFolderId(folder)
  await bindFolder({ store, id, isFree: true })
  await refuseOtherFolder({ store, folder })
  const worker = workerName()
  const others = (await findWorkers(store)).filter((one) => one.worker !== worker)
  const other = others.find((one) => one.folder !== id.files_place)
  if (other !== undefined && !sharesFolder) throw new SecondWorkerError({ place, ...other })
  // One that was frozen finds out by this that it is no longer the worker.
  if (!sharesFolder) await db.deleteFrom('workers').execute()
  const row = { ...id, seen_at: now() }
  await db
    .insertInto('workers')
    .values({ worker, ...row })
    .onConflict((conflict) => conflict.column('worker').doUpdateSet(row))
    .execute()
  return {
    async beat() {
      const { numUpdatedRows } = await db
        .updateTable('workers')
        .set({ seen_at: now() })
        .where('worker', '=', worker)
        .executeTakeFirstOrThrow()
      return numUpdatedRows > 0n
    },
    async [Symbol.asyncDispose]() {
      // Without PostgreSQL, the row is too old half a minute later.
      await db
        .deleteFrom('workers')
        .where('worker', '=', worker)
        .execute()
        .catch(() => undefined)
    },
  }
}

/** Binds a state to a data folder: `isFree` only if it belongs to none. */
export async function bindFolder(options: {
  store: Pick<SharedStore, 'db'>
  id: FolderId
  isFree: boolean
}): Promise<void> {
  const { store, id, isFree } = options
  const update = store.db.updateTable('store').set({ ...id })
  await (
    isFree ? update.where((row) => row.or([row('files', 'is', null), row('files', '=', id.files)])) : update
  ).execute()
}

/** @throws {OtherFolderError} the state belongs to another data folder */
export async function refuseOtherFolder(options: {
  store: Omit<SharedStore, 'now'>
  folder: string
}): Promise<void> {
  const { store, folder } = options
  const row = await store.db.selectFrom('store').select(['files', 'files_place']).executeTakeFirst()
  if (row?.files === undefined || row.files === null || row.files === readFolderId(folder)?.files) return
  throw new OtherFolderError({ place: store.place, folder, bound: row.files_place ?? 'another folder' })
}
