import type { State } from '../core/state/open.ts'
import { joinStore, type FilesId, type Membership } from '../core/state/postgres/membership.ts'
import { type BucketAddress, createBucketStore } from '../core/storage/bucket-store.ts'
import { cached, type SharedFolder } from '../core/storage/cached.ts'
import type { FileStore } from '../core/storage/file-store.ts'
import { bindStore, findOwner } from '../core/storage/prove-store.ts'
import { SettingsError } from './settings/environment.ts'
import { isConfidential } from './settings/kinds.ts'
import type { S3, Settings } from './settings/settings.ts'

/** @throws {SettingsError} the endpoint is not an address, or is not encrypted */
export function openBucket(address: BucketAddress, { allowHttp, ...config }: S3): FileStore {
  const { endpoint } = config
  const name = 'AWS_ENDPOINT_URL_S3 (or AWS_ENDPOINT_URL)'
  if (endpoint !== undefined && !/^https?:$/.test(URL.parse(endpoint)?.protocol ?? ''))
    throw new SettingsError([
      `${name} is not an http or https address; use one like https://storage.example.com.`,
    ])
  if (endpoint !== undefined && !allowHttp && !isConfidential(endpoint))
    throw new SettingsError([
      `${name} would send exports over unencrypted http; use https, or set BILLING_ALLOW_HTTP=true if you trust the network.`,
    ])
  return createBucketStore({ ...address, config })
}

/** The store of published files; undefined if the settings name none. */
export const openFiles = ({ filesUrl, s3 }: Pick<Settings, 'filesUrl' | 's3'>): FileStore | undefined =>
  filesUrl && openBucket(filesUrl, s3)

/**
 * Binds a bucket to the state of its workers, and returns what the state knows it by.
 * @throws {OtherStateError} it belongs to another state
 */
export async function bindBucket(store: FileStore, { storeId, shared }: State): Promise<FilesId> {
  const place = shared?.place ?? ''
  return { files: await bindStore({ store, state: storeId, place }), filesPlace: store.locate('') }
}

/** The id by which a state on PostgreSQL knows the bucket of these settings. */
export async function filesIdOf(store: FileStore): Promise<FilesId> {
  // Without an owner, no worker has used it yet.
  return { files: (await findOwner(store))?.id ?? '', filesPlace: store.locate('') }
}

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
