import { mkdir, rm } from 'node:fs/promises'
import { dirname, join, posix, relative, sep } from 'node:path'
import { removeTemporaries, temporaryName } from '../../storage/durable.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { proveOnce } from '../../storage/prove-store.ts'
import { refuseLinkOut } from '../allowed-root.ts'
import type { Publication, Published } from '../destination.ts'
import { refuseIncomplete } from '../errors.ts'
import { type FileFormat, refuseOtherwise, type StagedFiles } from '../file-format.ts'
import { filesOf, manifestName, type Manifest } from '../manifest/manifest.ts'
import { readStoredManifest } from '../manifest/read-manifest.ts'
import { toManifest } from '../manifest/to-manifest.ts'
import { contentName, withContentNames, withPlainNames } from './content-names.ts'
import { moveStorePointers, refuseForeignStore } from './store-pointers.ts'

interface Place {
  format: FileFormat
  publication: Publication
  /** The local folder beside which files are written before they are kept. */
  folder: string
  store: FileStore
}

/**
 * Publishes to `exports/<resource>/<run>/` of a store: files named by what they hold, then the manifest, which
 * makes them visible: it is created only if there is none. Then the pointers move, `latest.json` and
 * `latest-proven.json`, each only if it is still what was compared.
 *
 * Another attempt may run at the same time, on this machine or a frozen one: attempts share no file with other
 * contents, one of their manifests wins, and the other attempt finds it.
 */
export async function publishToStore(place: Place): Promise<Published> {
  const { publication, store } = place
  const { signal, onStep } = publication
  signal?.throwIfAborted()
  await proveOnce(store)
  const path = storePath(place)
  const existing = await readStoredManifest(store, path)
  if (existing !== undefined) refuseOther(place, existing)
  const resourcePath = dirname(path)
  await refuseForeignStore({ store, path: resourcePath, publication })
  const { manifest, fresh } =
    existing === undefined ? await show(place, path) : { manifest: existing, fresh: false }
  if (!fresh) await restoreFiles(place, { path, manifest })
  await moveStorePointers({ store, path: resourcePath, publication, folder: posix.basename(path), manifest })
  onStep?.('visible')
  return {
    manifest,
    location: store.locate(path),
    manifestPath: store.locate(`${path}/${manifestName}`),
    fresh,
  }
}

/** The same folders as below the local root: `exports/customers/<run>`, `exports/test/parquet/...`. */
function storePath({ publication, folder }: Place): string {
  return posix.join('exports', ...relative(publication.folder, folder).split(sep))
}

const refuseOther = (place: Place, existing: Manifest) =>
  refuseOtherwise({
    ...place,
    existing: withPlainNames(existing),
    where: place.store.locate(storePath(place)),
  })

/** Writes the files to the local disk, keeps them, and shows them by their manifest. */
async function show(place: Place, path: string): Promise<{ manifest: Manifest; fresh: boolean }> {
  const { format, publication, store } = place
  const { signal, onStep } = publication
  const shown = await withStaged(place, path, async ({ arrived, keep }) => {
    const files = filesOf(arrived)
    for (const file of files) await keep(file)
    onStep?.('staged')
    const manifest = toManifest({ publication, destination: format.name, arrived: withContentNames(arrived) })
    onStep?.('counted')
    signal?.throwIfAborted()
    if (!(await store.create(`${path}/${manifestName}`, `${JSON.stringify(manifest, null, 2)}\n`)))
      return undefined
    // A prune of an earlier publication of this run may have removed some before the manifest was there.
    const missing = await findMissing(store, { path, manifest })
    for (const file of files) if (missing.has(contentName(file))) await keep(file)
    if (missing.size > 0) await refuseLost(store, path)
    return manifest
  })
  if (shown !== undefined) return { manifest: shown, fresh: true }
  // Another attempt was first.
  const winner = await readStoredManifest(store, path)
  if (winner === undefined) throw manifestLost(store, path)
  refuseOther(place, winner)
  return { manifest: winner, fresh: false }
}

/**
 * Keeps the files of a published export again that are missing: an attempt may have been killed before it could, or
 * somebody has removed them.
 *
 * @throws {PublishedOtherwiseError} one that is missing cannot be made again: DuckDB writes Parquet in another order each time
 */
async function restoreFiles(place: Place, of: { path: string; manifest: Manifest }): Promise<void> {
  const { path } = of
  const missing = await findMissing(place.store, of)
  if (missing.size === 0) return
  await withStaged(place, path, async ({ arrived, keep }) => {
    for (const file of filesOf(arrived)) if (missing.delete(contentName(file))) await keep(file)
  })
  await refuseLost(place.store, path)
  refuseIncomplete({ missing: [...missing], where: place.store.locate(path) })
}

/** Fails where a prune has removed the manifest meanwhile: files that were kept again belong to no export then. */
async function refuseLost(store: FileStore, path: string): Promise<void> {
  if ((await store.readText(`${path}/${manifestName}`)) === undefined) throw manifestLost(store, path)
}

/** Retried: the next attempt publishes the export again. */
const manifestLost = (store: FileStore, path: string) =>
  new Error(`${store.locate(path)} lost its manifest while it was published.`)

/** The names of the files that the manifest has and the store has not. */
async function findMissing(store: FileStore, { path, manifest }: { path: string; manifest: Manifest }) {
  const there = new Map((await store.list(path)).map((file) => [file.path, file.bytes]))
  const missing = filesOf(manifest).filter((file) => there.get(`${path}/${file.path}`) !== file.bytes)
  return new Set(missing.map((file) => file.path))
}

interface StagedExport {
  arrived: StagedFiles
  /** Keeps a file of the folder under its content name. */
  keep: (file: { path: string; sha256: string }) => Promise<void>
}

/** Writes the files of an export into a local folder, which is removed after `work`. */
async function withStaged<T>(
  place: Place,
  path: string,
  work: (staged: StagedExport) => Promise<T>,
): Promise<T> {
  const { format, publication, folder, store } = place
  const { signal } = publication
  await refuseLinkOut({ root: publication.folder, path: folder })
  await mkdir(dirname(folder), { recursive: true })
  await removeTemporaries(folder)
  const staged = temporaryName(folder)
  await mkdir(staged)
  const keep = async (file: { path: string; sha256: string }) => {
    signal?.throwIfAborted()
    await store.put(`${path}/${contentName(file)}`, join(staged, file.path), { signal })
  }
  try {
    return await work({ arrived: await format.stage(publication, staged), keep })
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
}
