import { randomUUID } from 'node:crypto'
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
    worker: worker.replace(/ .*/, ''),
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
  const { db, now } = store
  const id = takeFolderId(folder)
  // Processes on several machines may have the same pid and host name.
  const worker = `${workerName()} ${randomUUID()}`
  await db.transaction().execute(async (transaction) => {
    const joining = { ...store, db: transaction }
    // Locks the state's row: of two workers that join at once, the second one sees the first.
    await bindFolder({ store: joining, id, isFree: true })
    await refuseOtherFolder({ store: joining, folder })
    if (!sharesFolder) {
      await refuseOtherWorker({ store: joining, id })
      // One that was frozen finds out by this that it is no longer the worker.
      await transaction.deleteFrom('workers').execute()
    }
    await transaction
      .insertInto('workers')
      .values({ worker, ...id, seen_at: now() })
      .execute()
  })
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

/** @throws {SecondWorkerError} a worker with another folder, or with a copy of this one, uses the state */
export async function refuseOtherWorker(options: {
  store: Pick<SharedStore, 'db' | 'now' | 'place'>
  id: FolderId
}): Promise<void> {
  const { store, id } = options
  const other = (await findWorkers(store)).find(({ folder }) => folder !== id.files_place)
  if (other !== undefined) throw new SecondWorkerError({ place: store.place, ...other })
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
