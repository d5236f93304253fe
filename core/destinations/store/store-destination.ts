import { mkdir, rm } from 'node:fs/promises'
import { dirname, join, posix, relative, sep } from 'node:path'
import { removeTemporaries, temporaryName } from '../../storage/durable.ts'
import type { FileStore } from '../../storage/file-store.ts'
import { proveOnce } from '../../storage/prove-store.ts'
import { refuseLinkOut } from '../allowed-root.ts'
import type { Publication, Published } from '../destination.ts'
import { type FileFormat, refuseOtherwise, writePage } from '../file-format.ts'
import { manifestName, type Manifest } from '../manifest/manifest.ts'
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
  if (existing !== undefined) await refuseOther(place, existing)
  const resourcePath = dirname(path)
  await refuseForeignStore({ store, path: resourcePath, publication })
  const { manifest, fresh } =
    existing === undefined ? await show(place, path) : { manifest: existing, fresh: false }
  await moveStorePointers({ store, path: resourcePath, publication, folder: posix.basename(path), manifest })
  onStep?.('visible')
  return {
    manifest,
    location: store.locate(path),
    manifestPath: store.locate(`${path}/${manifestName}`),
    ...(manifest.report !== undefined && { page: store.locate(`${path}/${manifest.report.path}`) }),
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
  const { format, publication, folder, store } = place
  const { signal, onStep } = publication
  await refuseLinkOut({ root: publication.folder, path: folder })
  await mkdir(dirname(folder), { recursive: true })
  await removeTemporaries(folder)
  const staged = temporaryName(folder)
  await mkdir(staged)
  try {
    const keep = async (file: { path: string; sha256: string }) => {
      signal?.throwIfAborted()
      await store.put(`${path}/${contentName(file)}`, join(staged, file.path), { signal })
    }
    const arrived = await format.stage(publication, staged)
    const { tables, rejected, missing } = arrived
    const files = [...tables, rejected, ...(missing === undefined ? [] : [missing])].flatMap((of) => of.files)
    for (const file of files) await keep(file)
    onStep?.('staged')
    const told = toManifest({ publication, destination: format.name, arrived: withContentNames(arrived) })
    const page = await writePage({ manifest: told, folder: staged })
    await keep(page)
    const manifest = { ...told, report: { ...page, path: contentName(page) } }
    onStep?.('counted')
    signal?.throwIfAborted()
    if (await store.create(`${path}/${manifestName}`, `${JSON.stringify(manifest, null, 2)}\n`)) {
      // A prune of an earlier publication of this run may have removed some before the manifest was there.
      const kept = new Set((await store.list(path)).map((file) => file.path))
      for (const file of [...files, page]) if (!kept.has(`${path}/${contentName(file)}`)) await keep(file)
      return { manifest, fresh: true }
    }
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
  // Another attempt was first.
  const winner = await readStoredManifest(store, path)
  if (winner === undefined) throw new Error(`${store.locate(path)} lost its manifest while it was published.`)
  await refuseOther(place, winner)
  return { manifest: winner, fresh: false }
}
