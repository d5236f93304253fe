import { mkdir, readdir, rm, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { PublishedState } from '../../state/publications.ts'
import type { SharedFolder } from '../../storage/cached.ts'
import { type ExportPlan, planIn } from '../plan.ts'
import { latestCheckpoint } from './checkpoint.ts'
import { orMissing } from '../../storage/system-errors.ts'
import { partsFolder } from './read-plan.ts'

const keptMs = 14 * 24 * 3600_000
const keptRuns = 3
/** Copies of what several workers keep in their store, which any step fetches again. */
const copiesKeptMs = 24 * 3600_000

/**
 * Removes parts that nobody needs: older than 14 days, not of the last 3 runs, and without a finished read that still
 * has to be published to one of the run's destinations. Parts that cannot be read or removed are left for the next
 * time, so that pruning never fails an export.
 */
export async function pruneParts(options: {
  dataDir: string
  shared: SharedFolder
  state: PublishedState
  now: number
}): Promise<void> {
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
    const isNeeded = async () => hasUnpublished({ ...options, plan: await planIn({ shared, folder }) })
    if (!(await isNeeded().catch(() => true))) await rm(folder, { recursive: true }).catch(() => undefined)
  }
}

/** Infinity for a folder that another run has just removed. */
const changedAt = (folder: string) =>
  stat(folder).then(
    ({ mtimeMs }) => mtimeMs,
    () => Infinity,
  )

/** Whether a run has a finished read that one of its destinations lacks. */
export async function hasUnpublished(of: {
  dataDir: string
  shared: SharedFolder
  state: PublishedState
  plan: ExportPlan | undefined
}): Promise<boolean> {
  const { dataDir, shared, state, plan } = of
  if (plan === undefined) return false
  const { run, resources, to } = plan
  const published = await state.publications.all({ run })
  const isIn = (resource: string) => (destination: string) =>
    published.some((one) => one.resource === resource && one.destination === destination)
  for (const resource of resources.filter((name) => !to.every(isIn(name)))) {
    // Nobody can publish a read that has not finished.
    const last = await latestCheckpoint({ shared, folder: partsFolder({ dataDir, run, resource }) })
    if (last?.outcome !== undefined) return true
  }
  return false
}

/** Finds the finished reads of a run, and the checkpoint to publish of each. They are kept for another 14 days from now on. */
export async function reserveParts(options: {
  dataDir: string
  shared: SharedFolder
  plan: ExportPlan
}): Promise<Partial<Record<ExportPlan['resources'][number], string>>> {
  const { dataDir, shared, plan } = options
  const { run, resources } = plan
  const found: Partial<Record<ExportPlan['resources'][number], string>> = {}
  for (const resource of resources) {
    const last = await latestCheckpoint({ shared, folder: partsFolder({ dataDir, run, resource }) })
    if (last?.outcome !== undefined) found[resource] = last.name
  }
  const now = new Date()
  // Parts are pruned by the age of the run's folder.
  await orMissing(utimes(partsFolder({ dataDir, run, resource: '' }), now, now))
  return found
}
