import { joinStore, type Membership } from '../core/state/postgres/membership.ts'
import type { State } from '../core/state/open.ts'
import type { FileStore } from '../core/storage/file-store.ts'
import { cached, type SharedFolder } from '../core/storage/cached.ts'
import { bindBucket, openFiles } from './files.ts'
import type { Settings } from './settings/settings.ts'

/** Where a worker keeps the files of its runs. */
export interface Files {
  /** Where files are published; undefined for the data folder. */
  files: FileStore | undefined
  shared: SharedFolder
  /** Undefined for a state in the data folder, which has one worker. */
  membership: Membership | undefined
}

/**
 * Opens the files of a worker, and joins the workers that use its state. With the state on PostgreSQL, any number of workers
 * do, and nothing depends on this machine.
 *
 * @throws {StateReplacedError} another state was moved there meanwhile
 * @throws {OtherBucketError} the files of the state are elsewhere
 * @throws {OtherStateError} the bucket belongs to another state
 */
export async function joinState({ settings, state }: { settings: Settings; state: State }): Promise<Files> {
  const { dataDir } = settings
  const files = openFiles(settings)
  // The settings name no database without a bucket.
  if (state.shared === undefined || files === undefined)
    return { files, shared: cached(dataDir), membership: undefined }
  const membership = await joinStore({
    store: state.shared,
    storeId: state.storeId,
    folder: dataDir,
    bindBucket: () => bindBucket(files, state),
  })
  return { files, shared: cached(dataDir, files), membership }
}
