import { readdir, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { isPublished, loadPublishNote } from './publish-record.ts'

const keptMs = 14 * 24 * 3600_000
const keptRuns = 3

/**
 * Removes parts that nobody will publish from again: older than 14 days, not of the last 3 runs, and every resource
 * of the run published wherever it was to be. Parts whose publishing has not succeeded stay. What can't be looked at or removed stays too,
 * until the next time: an export that is published does not fail for it.
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

/** Infinity for what another run has just removed. */
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
