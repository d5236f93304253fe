import { randomUUID } from 'node:crypto'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { StateBusyError, StateError } from '../errors.ts'
import type { SharedStore } from '../open.ts'
import type { WorkerTable } from '../schema.ts'
import { connector } from '../../runs/view/shell.ts'

/** A bucket, as a state on PostgreSQL knows it. */
export interface FilesId {
  files: string
  /** For people. */
  filesPlace: string
}

/** A worker's use of a state on PostgreSQL. */
export interface Membership extends AsyncDisposable {
  /** Says that the worker is alive. */
  beat(): Promise<void>
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

/** @throws {StateError} a worker uses the state, or did until half a minute ago */
export async function refuseWorkers(store: SharedStore): Promise<void> {
  const [worker] = await findWorkers(store)
  if (worker === undefined) return
  throw new StateError(
    'WorkerThereError',
    `The worker ${worker.worker} (data folder ${worker.folder}) uses the state in ${store.place} and was seen ` +
      `${Math.ceil(worker.ms / 1000)} s ago. End all workers first; after one was killed, wait for half a minute.`,
  )
}

/**
 * Does work while no worker uses a state on PostgreSQL. A worker that starts meanwhile waits for the row whose key this
 * holds, and gives up; the row's other columns can be written beside it.
 *
 * @throws {StateError} a worker uses the state
 */
export const withoutWorkers = <T>(store: SharedStore | undefined, work: () => Promise<T>): Promise<T> =>
  store === undefined
    ? work()
    : store.db.transaction().execute(async (db) => {
        const { sql } = await import('kysely')
        await sql`set local idle_in_transaction_session_timeout = 0`.execute(db)
        await db.selectFrom('store').select('id').forKeyShare().execute()
        await refuseWorkers({ ...store, db })
        return await work()
      })

/**
 * Joins a state on PostgreSQL. The first worker binds the state to the bucket with the files of its runs.
 *
 * @throws {StateError} another state was moved there since the worker opened it, or it belongs to another bucket
 */
export async function joinStore(options: {
  store: SharedStore
  /** The id of the state that the worker has opened. */
  storeId: string
  folder: string
  /** Called once no other state can be moved there: binds the bucket to the state. */
  bindBucket: () => Promise<FilesId>
}): Promise<Membership> {
  const { store, storeId, folder, bindBucket } = options
  const { db, now, place } = store
  // Processes on several machines may have the same pid and host name.
  const worker = `${workerName()} ${randomUUID()}`
  const me = { worker, filesPlace: `${resolve(folder)} on ${hostname()}` }
  await db.transaction().execute(async (transaction) => {
    // Locks the row, so that a move of another state to here sees this worker, or is over.
    const locked = transaction.selectFrom('store').select('id').forUpdate().executeTakeFirstOrThrow()
    const { id } = await locked.catch((cause: unknown) => {
      if (!(cause instanceof StateBusyError)) throw cause
      const text = `The state in ${place} is being repaired, reset or moved: start this worker again once that is done.`
      throw new StateError(cause.name, text, { cause, passes: true })
    })
    if (id !== storeId) {
      const text = `Another state was moved to ${place} while this worker started: start it again.`
      throw new StateError('StateReplacedError', text)
    }
    await transaction
      .deleteFrom('workers')
      .where('seenAt', '<', now() - forgottenMs)
      .execute()
    await sayThere({ db: transaction, now }, me)
  })
  const membership = toMembership(store, me)
  try {
    const files = await bindBucket()
    await bindFiles({ store, files, isFree: true })
    await refuseOtherFiles({ store, files })
  } catch (error) {
    await membership[Symbol.asyncDispose]()
    throw error
  }
  return membership
}

type Me = Pick<WorkerTable, 'worker' | 'filesPlace'>

/** A state that was restored from a backup may not know the worker. */
async function sayThere({ db, now }: Pick<SharedStore, 'db' | 'now'>, me: Me): Promise<void> {
  const seenAt = now()
  const insert = db.insertInto('workers').values({ ...me, seenAt })
  await insert.onConflict((known) => known.column('worker').doUpdateSet({ seenAt })).execute()
}

function toMembership(store: SharedStore, me: Me): Membership {
  let last = Promise.resolve()
  return {
    beat: () => (last = sayThere(store, me)),
    async [Symbol.asyncDispose]() {
      // It must not be there again after it is gone.
      await last.catch(() => undefined)
      // Without PostgreSQL, the row is too old half a minute later.
      await store.db
        .deleteFrom('workers')
        .where('worker', '=', me.worker)
        .execute()
        .catch(() => undefined)
    },
  }
}

/** Binds a state to a bucket: `isFree` only if it belongs to none. */
export async function bindFiles(options: {
  store: Pick<SharedStore, 'db'>
  files: FilesId
  isFree: boolean
}): Promise<void> {
  const { store, files, isFree } = options
  const update = store.db.updateTable('store').set({ ...files })
  await (
    isFree
      ? update.where((row) => row.or([row('files', 'is', null), row('files', '=', files.files)]))
      : update
  ).execute()
}

/** @throws {StateError} the state belongs to another bucket */
export async function refuseOtherFiles(options: {
  store: Omit<SharedStore, 'now'>
  files: FilesId
}): Promise<void> {
  const { store, files } = options
  const row = await store.db.selectFrom('store').select(['files', 'filesPlace']).executeTakeFirst()
  if (row?.files === undefined || row.files === null || row.files === files.files) return
  const bound = row.filesPlace ?? 'another bucket'
  throw new StateError(
    'OtherBucketError',
    `The files of the state in ${store.place} are in ${bound}, not in ${files.filesPlace}. Correct CONNECTOR_FILES_URL; ` +
      `if that bucket is lost, \`${connector`state repair --files-lost`}\` binds this one.`,
  )
}
