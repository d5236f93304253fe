import { lstat, readdir, readlink, rm } from 'node:fs/promises'
import { dirname, join, relative, resolve } from 'node:path'
import { readManifest } from '../destinations/manifest/read-manifest.ts'
import { toFileName } from '../storage/file-name.ts'
import { findProven, type PublishedNote, readPublished } from './publication-log.ts'
import { isWhollyPublished } from './parts/prune.ts'

/** A published folder that is no longer needed. */
export interface OldExport {
  run: string
  resource: string
  folder: string
  /** When the read began (ISO 8601). */
  startedAt: string
  bytes: number
}

/**
 * Finds published folders of the data folder whose read began before `before` (ms since 1970). Keeps folders that
 * `latest` or `latest-proven` point to, the newest proven export of each list, place and filters, folders of runs
 * that still have to be published somewhere, and folders whose manifest does not match the log.
 */
export async function findOldExports(options: { dataDir: string; before: number }): Promise<OldExport[]> {
  const { dataDir, before } = options
  const modes = await Promise.all([true, false].map((testMode) => readPublished({ dataDir, testMode })))
  const old: OldExport[] = []
  for (const published of modes)
    for (const note of published) {
      const folder = note.manifest === undefined ? undefined : dirname(note.manifest)
      if (folder === undefined || old.some((one) => one.folder === folder)) continue
      if (Date.parse(note.startedAt) >= before || !isInside(dataDir, folder)) continue
      if (await isNeeded({ dataDir, folder, note, published })) continue
      const { run, resource, startedAt } = note
      old.push({ run, resource, folder, startedAt, bytes: await sizeOf(folder) })
    }
  return old
}

/** Removes a folder found by `findOldExports`. */
export const removeOldExport = ({ folder }: OldExport): Promise<void> => rm(folder, { recursive: true })

async function isNeeded(options: {
  dataDir: string
  folder: string
  note: PublishedNote
  published: readonly PublishedNote[]
}): Promise<boolean> {
  const { dataDir, folder, note, published } = options
  const manifest = await readManifest(folder).catch(() => undefined)
  if (manifest?.run !== note.run || manifest.resource !== note.resource) return true
  if ((await pointedTo(dirname(folder))).has(folder)) return true
  const { mode } = note
  if (mode !== 'byId') {
    const newest = await findProven({ published, wanted: { ...note, mode, when: () => true } })
    if (newest?.manifest === note.manifest) return true
  }
  const parts = join(dataDir, 'parts', toFileName(note.run))
  return !(await isWhollyPublished(parts).catch((error: NodeJS.ErrnoException) => error.code === 'ENOENT'))
}

/** The targets of the symbolic links in a folder. */
async function pointedTo(root: string): Promise<ReadonlySet<string>> {
  const links = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isSymbolicLink())
  return new Set(
    await Promise.all(links.map(async ({ name }) => resolve(root, await readlink(join(root, name))))),
  )
}

function isInside(root: string, path: string): boolean {
  const way = relative(root, path)
  return way !== '' && !way.startsWith('..')
}

async function sizeOf(folder: string): Promise<number> {
  const names = await readdir(folder, { recursive: true })
  const sizes = await Promise.all(names.map(async (name) => (await lstat(join(folder, name))).size))
  return sizes.reduce((sum, size) => sum + size, 0)
}
