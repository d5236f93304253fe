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
 * Opens the files of a worker, and joins the workers that use its state. With state and files both elsewhere, any number
 * of workers do, and nothing depends on this machine.
 *
 * @throws {OtherFolderError} the files of the state are elsewhere
 * @throws {SecondWorkerError} another worker uses it, and files are in data folders
 * @throws {OtherStateError} the bucket belongs to another state
 */
export async function joinState(options: {
  settings: Settings
  state: State
  sharesFolder: boolean | undefined
}): Promise<Files> {
  const { settings, state, sharesFolder } = options
  const { dataDir } = settings
  const files = openFiles(settings)
  if (state.shared === undefined) return { files, shared: cached(dataDir), membership: undefined }
  const id = files && (await bindBucket(files, state))
  const membership = await joinStore({ store: state.shared, folder: dataDir, files: id, sharesFolder })
  return { files, shared: cached(dataDir, files), membership }
}
