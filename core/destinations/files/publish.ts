import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, extname, join, posix } from 'node:path'
import { removeTemporaries, syncPath, temporaryName, writeNew } from '../../storage/durable.ts'
import { toFileName } from '../../storage/file-name.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { createFolderStore } from '../../storage/folder-store.ts'
import { createKeyedMutex } from '../../storage/keyed-mutex.ts'
import { proveOnce } from '../../storage/prove-store.ts'
import { isSystemError } from '../../storage/system-errors.ts'
import { refuseLinkOut } from '../../storage/inside.ts'
import type { Destination, Publication, Published } from '../destination.ts'
import { AlreadyPublishedError, refuseIncomplete, UnwritableError } from '../errors.ts'
import {
  filesOf,
  isSameRead,
  manifestName,
  type Manifest,
  type PublishedFile,
  type ReadFacts,
  readStoredManifest,
} from '../manifest.ts'
import { toManifest } from '../to-manifest.ts'
import { isSameParts, rowsOf } from '../parts.ts'
import { movePointers, refuseForeign } from './pointers.ts'

export type StagedFiles = Pick<Manifest, 'tables' | 'rejected' | 'missing' | 'certificate' | 'dialect'> & {
  /** With the values that only this destination cannot hold. */
  facts?: ReadFacts
}

/** What differs between destinations that keep files. */
export interface FileFormat {
  name: Destination['name']
  /** The folder, below the root, that holds the folders of the resources. */
  below: string
  /** Writes the files into a folder private to this publication and counts what arrived. */
  stage: (publication: Publication, folder: string) => Promise<StagedFiles>
}

/** An export on its way: its path in the store, and the local folder beside which its files are staged. */
interface Export {
  format: FileFormat
  publication: Publication
  store: FileStore
  path: string
  folder: string
}

/**
 * Destination for files: `<root>/<resource>/<start>-<run>/` with one file per table, `rejected.jsonl` if items were rejected,
 * `missing.csv` if ids do not exist, the certificate of a list, and the manifest. The root is a folder, or `exports` in the store that the publication
 * names.
 */
export function createFileDestination(format: FileFormat): Destination {
  // An abandoned attempt may still be running when the next one begins, which removes staged files.
  const mutex = createKeyedMutex()
  return {
    name: format.name,
    publish(publication) {
      const local = exportPath(publication, format.below)
      const folder = join(publication.folder, local)
      const place = placeIn(publication, local)
      return mutex.runExclusive(folder, async () => {
        try {
          return await publish({ ...place, format, publication, folder })
        } catch (error) {
          throw isSystemError(error) ? new UnwritableError({ where: folder, cause: error }) : error
        }
      })
    },
  }
}

/** The store that a publication goes to, and there the path of what lies in a folder below its root. */
export const placeIn = ({ store, folder }: Publication, local: string) =>
  store === undefined
    ? { store: createFolderStore(folder), path: local }
    : { store, path: posix.join('exports', local) }

/**
 * The path of an export below its root. Test data has a folder of its own. The folder is named by the run, with its start in
 * front, so that folders sort by time, and by whatever makes the export other than the whole list in the standard dialect.
 */
export function exportPath(
  publication: Pick<
    Publication,
    'testMode' | 'resource' | 'run' | 'begunAt' | 'mode' | 'filters' | 'capped' | 'forExcel'
  >,
  below = '',
): string {
  const { testMode, resource, run, begunAt, mode, filters, capped, forExcel } = publication
  const marks = [
    ...(mode === 'incremental' ? ['-incremental'] : []),
    ...(Object.keys(filters).length > 0 ? ['-filtered'] : []),
    ...(capped ? ['-capped'] : []),
    ...(forExcel ? ['-excel'] : []),
  ]
  // Windows allows no colons.
  const date = `${new Date(begunAt).toISOString().slice(0, 19).replaceAll(':', '-')}Z`
  return posix.join(testMode ? 'test' : '', below, resource, `${date}-${toFileName(run)}${marks.join('')}`)
}

async function publish(of: Export): Promise<Published> {
  const { publication, store, path } = of
  const { signal, onStep } = publication
  signal?.throwIfAborted()
  await refuseLinkOut({ root: publication.folder, path: of.folder })
  if (store.folder === undefined) await proveOnce(store)
  const list = { store, path: dirname(path) }
  const existing = await findPublished(of)
  await refuseForeign(list, publication)
  const shown = existing === undefined ? await show(of) : undefined
  // Without either, another attempt was first.
  const manifest = shown ?? existing ?? (await findPublished(of)) ?? lostManifest(of)
  if (shown === undefined) await restoreFiles(of, manifest)
  await movePointers({ ...list, publication, folder: posix.basename(path), manifest })
  onStep?.('visible')
  return {
    manifest,
    location: store.locate(path),
    manifestPath: store.locate(`${path}/${manifestName}`),
    fresh: shown !== undefined,
  }
}

/**
 * The manifest of this export, if it is published already. What is published never changes: publishing again requires the
 * same files of the same read and workspace.
 * @throws {AlreadyPublishedError}
 */
async function findPublished({ publication, store, path }: Export): Promise<Manifest | undefined> {
  const existing = await readStoredManifest(store, path)
  if (existing === undefined) return undefined
  const { rejected = [], missing, forExcel = false } = publication
  const isSame =
    existing.workspace === publication.workspace &&
    isSameRead(publication, existing) &&
    isSameParts(publication, existing.tables) &&
    existing.rejected.rows === rowsOf(rejected) &&
    existing.missing?.rows === (missing && rowsOf(missing.parts)) &&
    (existing.dialect?.formulaGuard ?? false) === forExcel
  if (isSame) return existing
  throw new AlreadyPublishedError(
    `${store.locate(path)} holds this run already, of another read or with other files than these parts make. What is` +
      ' published is never changed: start a new run, or publish to another folder (--input out=...).',
  )
}

/**
 * Stages the files and shows them all at once: in a folder by renaming the one that they were staged in, elsewhere by the
 * manifest, which is created after all files and only if there is none. Undefined if another attempt was first.
 *
 * The other attempt may run on another machine, or on one that was frozen. No two attempts write different contents under
 * one name, and one of their manifests wins.
 */
async function show(of: Export): Promise<Manifest | undefined> {
  const { format, publication, store, path } = of
  const { signal, onStep } = publication
  return await withStaged(of.folder, async (staged) => {
    const arrived = await stage(of, staged)
    if (store.folder === undefined) await keep(of, staged, filesOf(arrived))
    onStep?.('staged')
    const { facts = publication.facts, ...files } = arrived
    const manifest = toManifest({ publication, destination: format.name, facts, arrived: files })
    const text = `${JSON.stringify(manifest, null, 2)}\n`
    if (store.folder !== undefined) {
      await writeNew(join(staged, manifestName), text)
      await syncPath(staged)
    }
    onStep?.('counted')
    signal?.throwIfAborted()
    if (store.folder !== undefined) {
      await store.folder.moveIn(path, staged)
      return manifest
    }
    if (!(await store.create(`${path}/${manifestName}`, text))) return undefined
    // A prune of an earlier publication of this run may have removed some before the manifest was there.
    const lost = await findLost(of, manifest)
    await keep(of, staged, lost)
    if (lost.length > 0) await refusePruned(of)
    return manifest
  })
}

/**
 * Puts back the files of a published export that are missing: an attempt may have been killed before it could, or somebody
 * has removed them.
 * @throws {AlreadyPublishedError} somebody has changed a file, or it cannot be made again: DuckDB writes Parquet in another
 * order each time
 */
async function restoreFiles(of: Export, manifest: Manifest): Promise<void> {
  const { store, path } = of
  const lost = await findLost(of, manifest)
  if (lost.length === 0) return
  const isLost = (file: PublishedFile) =>
    lost.some((one) => one.isMissing && one.path === file.path && one.sha256 === file.sha256)
  const restored = await withStaged(of.folder, async (staged) => {
    const files = filesOf(await stage(of, staged)).filter(isLost)
    await keep(of, staged, files)
    return new Set(files.map((file) => file.path))
  })
  await refusePruned(of)
  const missing = lost.map((file) => file.path).filter((name) => !restored.has(name))
  refuseIncomplete({ missing, where: store.locate(path) })
}

/** The files of the manifest that are missing, or have another length. */
async function findLost({ store, path }: Export, manifest: Manifest) {
  const there = new Map((await store.list(path)).map((file) => [file.path, file.bytes]))
  return filesOf(manifest).flatMap((file) => {
    const bytes = there.get(`${path}/${file.path}`)
    return bytes === file.bytes ? [] : [{ ...file, isMissing: bytes === undefined }]
  })
}

/** Fails where a prune has removed the manifest meanwhile: files that were put back belong to no export then. */
async function refusePruned(of: Export): Promise<void> {
  if ((await of.store.readText(`${of.path}/${manifestName}`)) === undefined) lostManifest(of)
}

/** Retried: the next attempt publishes the export again. */
function lostManifest({ store, path }: Export): never {
  throw new Error(`${store.locate(path)} lost its manifest while it was published.`)
}

/** Works in a local folder beside the given one, which is removed afterwards unless it was moved. */
export async function withStaged<T>(folder: string, work: (staged: string) => Promise<T>): Promise<T> {
  await mkdir(dirname(folder), { recursive: true })
  await removeTemporaries(folder)
  const staged = temporaryName(folder)
  await mkdir(staged)
  try {
    return await work(staged)
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
}

async function stage({ format, publication, store }: Export, staged: string): Promise<StagedFiles> {
  const arrived = await format.stage(publication, staged)
  if (store.folder === undefined)
    for (const file of filesOf(arrived)) {
      const plain = join(staged, file.path)
      file.path = contentName(file)
      await rename(plain, join(staged, file.path))
    }
  return arrived
}

/**
 * The name of a file where nothing can be renamed: with the beginning of its checksum, as in `customers-3f9a1c2b7d10.csv`.
 * So no later attempt writes other contents under a name that a manifest may hold.
 */
function contentName({ path, sha256 }: PublishedFile): string {
  const ending = extname(path)
  return `${path.slice(0, path.length - ending.length)}-${sha256.slice(0, 12)}${ending}`
}

/** Copies staged files to the store. */
export async function keep(
  { publication, store, path }: Pick<Export, 'publication' | 'store' | 'path'>,
  staged: string,
  files: readonly Pick<PublishedFile, 'path'>[],
): Promise<void> {
  const { signal } = publication
  for (const file of files) {
    signal?.throwIfAborted()
    await store.put(`${path}/${file.path}`, join(staged, file.path), { signal })
  }
}
