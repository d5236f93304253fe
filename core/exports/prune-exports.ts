import { lstat, readdir, rm } from 'node:fs/promises'
import { basename, dirname, join, relative } from 'node:path'
import { manifestName } from '../destinations/manifest/manifest.ts'
import { pointedTo } from '../destinations/files/pointers.ts'
import type { FileStore } from '../storage/file-store.ts'
import { createFolderStore } from '../storage/folder-store.ts'
import { isAddress, type Publication, type PublishedState } from '../state/publications.ts'
import type { SharedFolder } from '../storage/cached.ts'
import { hasUnpublished } from './parts/prune.ts'
import { findProven, manifestAt } from './proven.ts'
import { loadPlan } from './plan.ts'

/** A published folder that is no longer needed. */
export interface OldExport {
  run: string
  resource: string
  /** Its path, or its address in the store. */
  folder: string
  /** When the read began (ISO 8601). */
  startedAt: string
  bytes: number
}

/**
 * Finds published folders of the data folder and the store whose read began before `before` (ms since 1970). Keeps
 * folders that `latest` or `latest-proven` point to, the newest proven export of each list, place and filters, folders
 * of runs that still have to be published somewhere, and folders whose manifest is not that of the publication.
 */
export async function findOldExports(options: {
  dataDir: string
  files: FileStore | undefined
  shared: SharedFolder
  state: PublishedState
  before: number
}): Promise<OldExport[]> {
  const { before, state } = options
  const modes = await Promise.all([true, false].map((testMode) => state.publications.all({ testMode })))
  const old: OldExport[] = []
  for (const published of modes)
    for (const one of published) {
      const folder = one.manifest === undefined ? undefined : dirname(one.manifest)
      if (folder === undefined || old.some((known) => known.folder === folder)) continue
      const place = placeOf({ ...options, folder })
      if (Date.parse(one.startedAt) >= before || place === undefined) continue
      if (await isNeeded({ ...options, place, one, published })) continue
      const { run, resource, startedAt } = one
      old.push({ run, resource, folder, startedAt, bytes: await place.size() })
    }
  return old
}

/** Removes a folder found by `findOldExports`. */
export async function removeOldExport(options: {
  dataDir: string
  files: FileStore | undefined
  old: OldExport
}): Promise<void> {
  const { folder } = options.old
  await placeOf({ ...options, folder })?.remove()
}

/** What can be done with a published folder, wherever it is. */
interface Place {
  isPointedTo(): Promise<boolean>
  size(): Promise<number>
  remove(): Promise<void>
}

/** Undefined for a folder outside of the data folder and of this store. */
function placeOf(options: {
  dataDir: string
  files: FileStore | undefined
  folder: string
}): Place | undefined {
  const { dataDir, files, folder } = options
  const path = files?.pathOf(folder)
  if (files !== undefined && path !== undefined) return placeInStore(files, path)
  if (isAddress(folder) || !isInside(dataDir, folder)) return undefined
  return {
    isPointedTo: async () => (await pointedTo(createFolderStore(dirname(folder)), '')).has(basename(folder)),
    size: () => sizeOf(folder),
    remove: () => rm(folder, { recursive: true }),
  }
}

const placeInStore = (files: FileStore, path: string): Place => ({
  isPointedTo: async () => (await pointedTo(files, dirname(path))).has(path),
  size: async () => (await files.list(path)).reduce((sum, { bytes }) => sum + bytes, 0),
  async remove() {
    const manifest = `${path}/${manifestName}`
    // The manifest first, so that nobody finds an export without its files; again if someone has just published it.
    do {
      await files.remove(manifest)
      for (const file of await files.list(path)) await files.remove(file.path)
    } while ((await files.read(manifest)) !== undefined)
  },
})

async function isNeeded(options: {
  dataDir: string
  files: FileStore | undefined
  shared: SharedFolder
  state: PublishedState
  place: Place
  one: Publication
  published: readonly Publication[]
}): Promise<boolean> {
  const { files, place, one, published } = options
  const manifest = one.manifest === undefined ? undefined : await manifestAt(one.manifest, files)
  if (manifest?.run !== one.run || manifest.resource !== one.resource) return true
  if (await place.isPointedTo()) return true
  const { mode } = one
  if (mode !== 'byId') {
    const newest = await findProven({ published, files, wanted: { ...one, mode, when: () => true } })
    if (newest?.manifest === one.manifest) return true
  }
  return await hasUnpublished({ ...options, plan: await loadPlan({ ...options, run: one.run }) })
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
