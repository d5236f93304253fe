import { createHash } from 'node:crypto'
import { mkdir, rename, rm } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pageName } from '../runs/view/view.ts'
import { toReportPage } from '../runs/view/html.ts'
import { refuseLinkOut } from './allowed-root.ts'
import type { Destination, Publication, Published } from './destination.ts'
import { removeTemporaries, syncPath, temporaryName, writeNew } from '../storage/durable.ts'
import { isSystemError } from '../storage/system-errors.ts'
import { PublishedOtherwiseError, UnwritableError } from './errors.ts'
import { toManifestView } from './manifest/manifest-view.ts'
import { folderName } from './export-folder.ts'
import { isSameRead, manifestName, type Manifest } from './manifest/manifest.ts'
import { movePointers, refuseForeign } from './pointers.ts'
import { readManifest } from './manifest/read-manifest.ts'
import { toManifest } from './manifest/to-manifest.ts'
import { createKeyedMutex } from '../storage/keyed-mutex.ts'

export type StagedFiles = Pick<Manifest, 'tables' | 'rejected' | 'missing' | 'dialect'>

/** What differs between destinations that keep files in a folder. */
export interface FolderFormat {
  name: Destination['name']
  /** The folder that holds the resources' folders. */
  root: (publication: Publication) => string
  /** Writes the files into a folder private to this publication and counts what arrived. */
  stage: (publication: Publication, folder: string) => Promise<StagedFiles>
  /** Whether a published manifest describes the same files as these parts would produce. */
  isSame: (publication: Publication, existing: Manifest) => Promise<boolean>
}

/**
 * Destination for files: `<root>/<resource>/<run>/` with one file per table, `rejected.jsonl` if items were
 * rejected, `missing.csv` if ids do not exist, and the manifest. Writes them into a hidden folder beside it,
 * then renames that folder to make them visible.
 */
export function createFolderDestination(format: FolderFormat): Destination {
  // An abandoned attempt may still be running when the next one begins, which removes staged files.
  const mutex = createKeyedMutex()
  return {
    name: format.name,
    publish(publication) {
      const folder = join(format.root(publication), publication.resource, folderName(publication))
      return mutex.runExclusive(folder, () => publish(format, publication, folder))
    },
  }
}

async function publish(format: FolderFormat, publication: Publication, folder: string): Promise<Published> {
  const { signal, onStep } = publication
  try {
    signal?.throwIfAborted()
    await refuseLinkOut({ root: publication.folder, path: folder })
    await mkdir(dirname(folder), { recursive: true })
    await removeTemporaries(folder)
    const existing = await readManifest(folder)
    if (existing !== undefined && !(await isSame(format, publication, existing)))
      throw new PublishedOtherwiseError(
        `${folder} holds this run already, of another read or with other files than these parts make. What is` +
          ' published is never changed: start a new run, or publish to another folder (--out).',
      )
    await refuseForeign(publication, folder)
    const manifest = existing ?? (await show(format, publication, folder))
    await movePointers(publication, folder)
    onStep?.('visible')
    return {
      manifest,
      location: folder,
      manifestPath: join(folder, manifestName),
      fresh: existing === undefined,
    }
  } catch (error) {
    throw isSystemError(error) ? new UnwritableError({ where: folder, cause: error }) : error
  }
}

/**
 * Published exports never change; publishing again requires the same files of the same read and workspace.
 */
const isSame = async (format: FolderFormat, publication: Publication, existing: Manifest) =>
  existing.workspace === publication.workspace &&
  isSameRead(publication, existing) &&
  (await format.isSame(publication, existing))

/** Stages the files beside their final place and shows them by one rename. */
async function show(format: FolderFormat, publication: Publication, folder: string): Promise<Manifest> {
  const { signal, onStep } = publication
  const staged = temporaryName(folder)
  await mkdir(staged)
  try {
    const arrived = await format.stage(publication, staged)
    onStep?.('staged')
    const told = toManifest({ publication, destination: format.name, arrived })
    const manifest = { ...told, report: await writePage({ manifest: told, folder: staged }) }
    await writeNew(join(staged, manifestName), `${JSON.stringify(manifest, null, 2)}\n`)
    await syncPath(staged)
    onStep?.('counted')
    signal?.throwIfAborted()
    await rename(staged, folder)
    await syncPath(dirname(folder))
    return manifest
  } finally {
    await rm(staged, { recursive: true, force: true })
  }
}

/** Writes the page that shows the manifest. It is written first, because the manifest holds its checksum. */
async function writePage({
  manifest,
  folder,
}: {
  manifest: Manifest
  folder: string
}): Promise<NonNullable<Manifest['report']>> {
  const page = Buffer.from(toReportPage(toManifestView(manifest)))
  await writeNew(join(folder, pageName), page)
  return {
    path: pageName,
    bytes: page.length,
    sha256: createHash('sha256').update(page).digest('hex'),
  }
}
