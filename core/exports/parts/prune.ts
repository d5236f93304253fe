import { mkdir, readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { SharedFolder } from '../../storage/shared-folder.ts'
import { isPublished, loadPublishNote } from './publish-record.ts'

const keptMs = 14 * 24 * 3600_000
const keptRuns = 3
/** The local copies of several workers, which any step fetches again. */
const copiesKeptMs = 24 * 3600_000

/**
 * Removes parts that are no longer needed for publishing: older than 14 days, not of the last 3 runs, and with
 * every resource published to all of the run's destinations. Parts that are not fully published are kept. Parts
 * that cannot be read or removed are left for the next time, so that pruning never fails an export. Where several workers
 * keep their parts elsewhere, only local copies are removed, a day after they were last used.
 */
export async function pruneParts(options: {
  dataDir: string
  shared: SharedFolder
  now: number
}): Promise<void> {
  const { shared } = options
  const root = join(options.dataDir, 'parts')
  // A worker with an empty folder may close a run.
  await mkdir(root, { recursive: true })
  const entries = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  const runs = await Promise.all(
    entries.map(async ({ name }) => ({ folder: join(root, name), at: await changedAt(join(root, name)) })),
  )
  const old = runs
    .toSorted((a, b) => b.at - a.at)
    .slice(shared.isShared ? 0 : keptRuns)
    .filter(({ at }) => at < options.now - (shared.isShared ? copiesKeptMs : keptMs))
  for (const { folder } of old) {
    const isNeeded = shared.isShared
      ? !(await isCopy({ shared, folder }).catch(() => false)) ||
        (await usedAt(folder)) > options.now - copiesKeptMs
      : !(await isWhollyPublished({ shared, folder }).catch(() => false))
    if (!isNeeded) await rm(folder, { recursive: true }).catch(() => undefined)
  }
}

/** Infinity for a folder that another run has just removed. */
const changedAt = (folder: string) =>
  stat(folder).then(
    ({ mtimeMs }) => mtimeMs,
    () => Infinity,
  )

/** What was read before the worker became one of several is in its folder alone. */
const isCopy = async ({ shared, folder }: { shared: SharedFolder; folder: string }): Promise<boolean> =>
  (await shared.read(join(folder, 'run.json'))) !== undefined

/** When a part was last written, or fetched for a step. */
async function usedAt(folder: string): Promise<number> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory())
  return Math.max(0, ...(await Promise.all(folders.map((one) => changedAt(join(one.parentPath, one.name))))))
}

export async function isWhollyPublished(of: { shared: SharedFolder; folder: string }): Promise<boolean> {
  const entries = await readdir(of.folder, { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(of.folder, name))
  const notes = await Promise.all(folders.map((folder) => loadPublishNote({ ...of, folder })))
  return notes.every(isPublished)
}
