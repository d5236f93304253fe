import { rm } from 'node:fs/promises'
import { dirname } from 'node:path'
import { manifestName } from '../destinations/manifest.ts'
import { pointedTo } from '../destinations/files/pointers.ts'
import type { FileStore } from '../storage/file-store.ts'
import { createFolderStore } from '../storage/folder-store.ts'
import type { Publication, PublishedState } from '../state/publications.ts'
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

/** Where exports are published: the data folder, and the store of a fleet. */
interface Places {
  dataDir: string
  files: FileStore | undefined
}

/**
 * Finds published folders of the data folder and the store whose read began before `before` (ms since 1970). Keeps
 * folders that `latest` or `latest-proven` point to, the newest proven export of each list, place and filters, folders
 * of runs that still have to be published somewhere, and folders whose manifest is not that of the publication.
 */
export async function findOldExports(
  options: Places & { shared: SharedFolder; state: PublishedState; before: number },
): Promise<OldExport[]> {
  const { before, state } = options
  const modes = await Promise.all([true, false].map((testMode) => state.publications.all({ testMode })))
  const old: OldExport[] = []
  for (const published of modes)
    for (const one of published) {
      if (one.manifest === undefined || Date.parse(one.startedAt) >= before) continue
      const folder = dirname(one.manifest)
      if (old.some((known) => known.folder === folder)) continue
      const stored = findStored(options, folder)
      if (stored === undefined || (await isNeeded({ ...options, ...stored, one, published }))) continue
      const bytes = (await stored.store.list(stored.path)).reduce((sum, file) => sum + file.bytes, 0)
      old.push({ run: one.run, resource: one.resource, folder, startedAt: one.startedAt, bytes })
    }
  return old
}

/** Removes a folder found by `findOldExports`. */
export async function removeOldExport(options: Places & { old: OldExport }): Promise<void> {
  const stored = findStored(options, options.old.folder)
  if (stored === undefined) return
  const { store, path } = stored
  const manifest = `${path}/${manifestName}`
  // The manifest first, so that nobody finds an export without its files; again if someone has just published it.
  do {
    await store.remove(manifest)
    for (const file of await store.list(path)) await store.remove(file.path)
  } while ((await store.readText(manifest)) !== undefined)
  // A bucket has no empty folders.
  if (store.folder !== undefined) await rm(store.locate(path), { recursive: true, force: true })
}

/** Undefined for a folder outside of the data folder and of this store. */
function findStored(
  { dataDir, files }: Places,
  folder: string,
): { store: FileStore; path: string } | undefined {
  for (const store of [...(files === undefined ? [] : [files]), createFolderStore(dataDir)]) {
    const path = store.pathOf(folder)
    if (path !== undefined) return { store, path }
  }
  return undefined
}

async function isNeeded(
  options: Places & {
    shared: SharedFolder
    state: PublishedState
    store: FileStore
    path: string
    one: Publication
    published: readonly Publication[]
  },
): Promise<boolean> {
  const { files, store, path, one, published } = options
  const manifest = one.manifest === undefined ? undefined : await manifestAt(one.manifest, files)
  if (manifest?.run !== one.run || manifest.resource !== one.resource) return true
  if ((await pointedTo(store, dirname(path))).has(path)) return true
  const { mode } = one
  if (mode !== 'byId') {
    const newest = await findProven({ published, files, wanted: { ...one, mode, when: () => true } })
    if (newest?.manifest === one.manifest) return true
  }
  return await hasUnpublished({ ...options, plan: await loadPlan({ ...options, run: one.run }) })
}
