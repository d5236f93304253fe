import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { removeTemporaries, syncPath, temporaryName, writeNew } from '../storage/durable.ts'
import { orMissing } from '../storage/system-errors.ts'
import { refuseLinkOut } from './allowed-root.ts'
import type { Publication, Published } from './destination.ts'
import { refuseIncomplete } from './errors.ts'
import { type FileFormat, refuseOtherwise } from './file-format.ts'
import { filesOf, manifestName, type Manifest } from './manifest/manifest.ts'
import { readManifest } from './manifest/read-manifest.ts'
import { toManifest } from './manifest/to-manifest.ts'
import { movePointers, refuseForeign } from './pointers.ts'

interface Place {
  format: FileFormat
  publication: Publication
  folder: string
}

/**
 * Publishes to `<root>/<resource>/<run>/`: one file per table, `rejected.jsonl` if items were rejected,
 * `missing.csv` if ids do not exist, and the manifest. Writes them into a hidden folder beside it, then renames
 * that folder to make them visible.
 */
export async function publishToFolder(place: Place): Promise<Published> {
  const { publication, folder } = place
  const { signal, onStep } = publication
  signal?.throwIfAborted()
  await refuseLinkOut({ root: publication.folder, path: folder })
  await mkdir(dirname(folder), { recursive: true })
  await removeTemporaries(folder)
  const existing = await readManifest(folder)
  if (existing !== undefined) {
    refuseOtherwise({ publication, existing, where: folder })
    refuseIncomplete({ missing: await findMissing(folder, existing), where: folder })
  }
  await refuseForeign(publication, folder)
  const manifest = existing ?? (await show(place))
  await movePointers(publication, folder)
  onStep?.('visible')
  return {
    manifest,
    location: folder,
    manifestPath: join(folder, manifestName),
    fresh: existing === undefined,
  }
}

/** The files that the manifest has and the folder has not. */
async function findMissing(folder: string, manifest: Manifest): Promise<string[]> {
  const missing: string[] = []
  for (const { path, bytes } of filesOf(manifest)) {
    const found = await orMissing(stat(join(folder, path)))
    if (found?.size !== bytes) missing.push(path)
  }
  return missing
}

/** Stages the files beside their final place and shows them by one rename. */
async function show({ format, publication, folder }: Place): Promise<Manifest> {
  const { signal, onStep } = publication
  const staged = temporaryName(folder)
  await mkdir(staged)
  try {
    const arrived = await format.stage(publication, staged)
    onStep?.('staged')
    const manifest = toManifest({ publication, destination: format.name, arrived })
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
