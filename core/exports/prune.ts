import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { pointedTo } from '../destinations/files/pointers.ts'
import { manifestName } from '../destinations/manifest.ts'
import type { Publication, PublishedState } from '../state/publications.ts'
import type { SharedFolder } from '../storage/cached.ts'
import type { FileStore } from '../storage/file-store.ts'
import { createFolderStore } from '../storage/folder-store.ts'
import { orMissing } from '../storage/system-errors.ts'
import { latestCheckpoint } from './parts/checkpoint.ts'
import { partsFolder } from './parts/read-plan.ts'
import { type ExportPlan, loadPlan, partsOf, planIn } from './plan.ts'
import { findProven, manifestAt } from './proven.ts'

const keptMs = 14 * 24 * 3600_000
const keptRuns = 3
/** Copies of what several workers keep in their store, which any step fetches again. */
const copiesKeptMs = 24 * 3600_000

interface Deps {
  dataDir: string
  shared: SharedFolder
  state: PublishedState
}

/**
 * Removes parts that nobody needs: older than 14 days, not of the last 3 runs, and without a finished read that still
 * has to be published to one of the run's destinations. Parts that cannot be read or removed are left for the next
 * time, so that pruning never fails an export.
 */
export async function pruneParts(options: Deps & { now: number }): Promise<void> {
  const { shared, now } = options
  const root = join(options.dataDir, 'parts')
  // A worker with an empty folder may close a run.
  await mkdir(root, { recursive: true })
  await shared.removeCopies(root, { before: now - copiesKeptMs })
  const entries = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  const runs = await Promise.all(
    entries.map(async ({ name }) => ({ folder: join(root, name), at: await changedAt(join(root, name)) })),
  )
  const old = runs
    .toSorted((a, b) => b.at - a.at)
    .slice(keptRuns)
    .filter(({ at }) => at < now - keptMs)
  for (const { folder } of old) {
    const isNeeded = planIn({ shared, folder }).then((plan) => hasUnpublished(options, plan))
    if (!(await isNeeded.catch(() => true))) await rm(folder, { recursive: true }).catch(() => undefined)
  }
}

/** Infinity for a folder that another run has just removed. */
const changedAt = (folder: string) =>
  stat(folder).then(
    ({ mtimeMs }) => mtimeMs,
    () => Infinity,
  )

/** Whether a run has a finished read that one of its destinations lacks. Nobody can publish one that has not finished. */
async function hasUnpublished(deps: Deps, plan: ExportPlan | undefined): Promise<boolean> {
  if (plan === undefined) return false
  const published = await deps.state.publications.all({ run: plan.run })
  const isIn = (resource: string) => (destination: string) =>
    published.some((one) => one.resource === resource && one.destination === destination)
  const lacking = plan.resources.filter((resource) => !plan.to.every(isIn(resource)))
  return Object.keys(await finishedReads(deps, { run: plan.run, resources: lacking })).length > 0
}

type FinishedReads = Partial<Record<ExportPlan['resources'][number], string>>

/** The finished reads of a run, and the checkpoint to publish of each. */
async function finishedReads(
  { dataDir, shared }: Omit<Deps, 'state'>,
  { run, resources }: Pick<ExportPlan, 'run' | 'resources'>,
): Promise<FinishedReads> {
  const found: FinishedReads = {}
  for (const resource of resources) {
    const last = await latestCheckpoint({ shared, folder: partsFolder({ dataDir, run, resource }) })
    if (last?.outcome !== undefined) found[resource] = last.name
  }
  return found
}

/** Finds the finished reads of a run. They are kept for another 14 days from now on. */
export async function reserveParts(
  deps: Omit<Deps, 'state'>,
  plan: Pick<ExportPlan, 'run' | 'resources'>,
): Promise<FinishedReads> {
  const found = await finishedReads(deps, plan)
  const now = new Date()
  // Parts are pruned by the age of the run's folder.
  await orMissing(utimes(partsOf({ ...deps, run: plan.run }), now, now))
  return found
}

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
interface Roots {
  dataDir: string
  files: FileStore | undefined
}

/**
 * Finds published folders of the data folder and the store whose read began before `before` (ms since 1970). Keeps
 * folders that `latest` or `latest-proven` point to, the newest proven export of each list, place and filters, folders
 * of runs that still have to be published somewhere, and folders whose manifest is not that of the publication.
 */
export async function findOldExports(options: Roots & Deps & { before: number }): Promise<OldExport[]> {
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

async function isNeeded(
  options: Roots &
    Deps & { store: FileStore; path: string; one: Publication; published: readonly Publication[] },
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
  return await hasUnpublished(options, await loadPlan({ ...options, run: one.run }))
}

/** Removes a folder found by `findOldExports`. */
export async function removeOldExport(options: Roots & { old: OldExport }): Promise<void> {
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
  { dataDir, files }: Roots,
  folder: string,
): { store: FileStore; path: string } | undefined {
  for (const store of [...(files === undefined ? [] : [files]), createFolderStore(dataDir)]) {
    const path = store.pathOf(folder)
    if (path !== undefined) return { store, path }
  }
  return undefined
}
