import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isPublished, loadPublishNote } from './publish-record.ts'

const keptMs = 14 * 24 * 3600_000
const keptRuns = 3

/**
 * Removes parts that are no longer needed for publishing: older than 14 days, not of the last 3 runs, and with
 * every resource published to all of the run's destinations. Parts that are not fully published are kept. Parts
 * that cannot be read or removed are left for the next time, so that pruning never fails an export.
 */
export async function pruneParts(options: { dataDir: string; now: number }): Promise<void> {
  const root = join(options.dataDir, 'parts')
  const entries = (await readdir(root, { withFileTypes: true })).filter((entry) => entry.isDirectory())
  const runs = await Promise.all(
    entries.map(async ({ name }) => ({ folder: join(root, name), at: await changedAt(join(root, name)) })),
  )
  const old = runs
    .toSorted((a, b) => b.at - a.at)
    .slice(keptRuns)
    .filter(({ at }) => at < options.now - keptMs)
  for (const { folder } of old) {
    if (await isWhollyPublished(folder).catch(() => false))
      await rm(folder, { recursive: true }).catch(() => undefined)
  }
}

/** Infinity for a folder that another run has just removed. */
const changedAt = (folder: string) =>
  stat(folder).then(
    ({ mtimeMs }) => mtimeMs,
    () => Infinity,
  )

export async function isWhollyPublished(run: string): Promise<boolean> {
  const entries = await readdir(run, { withFileTypes: true })
  const folders = entries.filter((entry) => entry.isDirectory()).map(({ name }) => join(run, name))
  const notes = await Promise.all(folders.map(loadPublishNote))
  return notes.every(isPublished)
}
