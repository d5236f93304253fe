import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { OtherFolderError, SecondWorkerError } from '../place-errors.ts'
import type { SharedStore } from '../open.ts'
import { type FilesId, readFolderId, takeFolderId } from './folder-id.ts'

/** A worker's use of a state on PostgreSQL. */
export interface Membership extends AsyncDisposable {
  /** Says that the worker is alive; false if another worker has taken its place, after none of these for half a minute. */
  beat(): Promise<boolean>
}

/** A worker that was last seen longer ago has ended, or is frozen. */
const seenWithinMs = 30_000
/** After a day, a worker that did not say goodbye is forgotten. */
const forgottenMs = 86_400_000
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
    .where('seenAt', '>', at - seenWithinMs)
    .orderBy('worker')
    .execute()
  return rows.map(({ worker, filesPlace: folder, seenAt }) => ({
    worker: worker.replace(/ .*/, ''),
    folder,
    ms: Math.max(0, at - seenAt),
  }))
}

/**
 * Joins a state on PostgreSQL. The first worker binds the state to where the files of its runs are: in the data folder of
 * the only worker, or in a file store, which any number of workers use.
 *
 * @throws {OtherFolderError} the state belongs to another data folder or file store
 * @throws {SecondWorkerError} a worker with a copy of the folder uses it
 */
export async function joinStore(options: {
  store: SharedStore
  folder: string
  /** The file store of all workers; undefined if the files are in the data folder. */
  files?: FilesId | undefined
  /** Tests: other workers use the same folder. */
  sharesFolder?: boolean | undefined
}): Promise<Membership> {
  const { store, folder, files, sharesFolder = false } = options
  const { db, now } = store
  const own = takeFolderId(folder)
  const id = files ?? own
  // Processes on several machines may have the same pid and host name.
  const worker = `${workerName()} ${randomUUID()}`
  await db.transaction().execute(async (transaction) => {
    const joining = { ...store, db: transaction }
    // Locks the state's row: of two workers that join at once, the second one sees the first.
    await bindFolder({ store: joining, id, isFree: true })
    await refuseOtherFiles({ store: joining, folder, files })
    if (files === undefined && !sharesFolder) {
      await refuseOtherWorker({ store: joining, id })
      // One that was frozen finds out by this that it is no longer the worker.
      await transaction.deleteFrom('workers').execute()
    }
    if (files !== undefined)
      await transaction
        .deleteFrom('workers')
        .where('seenAt', '<', now() - forgottenMs)
        .execute()
    await transaction
      .insertInto('workers')
      .values({ worker, ...own, files: id.files, seenAt: now() })
      .execute()
  })
  return {
    async beat() {
      const { numUpdatedRows } = await db
        .updateTable('workers')
        .set({ seenAt: now() })
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
  id: FilesId
}): Promise<void> {
  const { store, id } = options
  const other = (await findWorkers(store)).find(({ folder }) => folder !== id.filesPlace)
  if (other !== undefined) throw new SecondWorkerError({ place: store.place, ...other })
}

/** Binds a state to a data folder or file store: `isFree` only if it belongs to none. */
export async function bindFolder(options: {
  store: Pick<SharedStore, 'db'>
  id: FilesId
  isFree: boolean
}): Promise<void> {
  const { store, id, isFree } = options
  const update = store.db.updateTable('store').set({ ...id })
  await (
    isFree ? update.where((row) => row.or([row('files', 'is', null), row('files', '=', id.files)])) : update
  ).execute()
}

/** @throws {OtherFolderError} the state belongs to another data folder or file store */
export async function refuseOtherFiles(options: {
  store: Omit<SharedStore, 'now'>
  folder: string
  /** The file store of all workers; undefined if the files are in the data folder. */
  files: FilesId | undefined
}): Promise<void> {
  const { store, folder, files } = options
  const row = await store.db.selectFrom('store').select(['files', 'filesPlace']).executeTakeFirst()
  const own = files?.files ?? readFolderId(folder)?.files
  if (row?.files === undefined || row.files === null || row.files === own) return
  const bound = row.filesPlace ?? 'another folder'
  throw new OtherFolderError({ place: store.place, files: files?.filesPlace ?? folder, bound })
}
