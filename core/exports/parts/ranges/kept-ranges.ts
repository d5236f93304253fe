import { randomUUID } from 'node:crypto'
import { mkdir, readFile, rename, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { PartsDamagedError } from '../../../destinations/errors.ts'
import type { RangePlan } from '../../../reading/ranges/range-plan.ts'
import { syncPath, writeNew } from '../../../storage/durable.ts'
import { isSystemError } from '../../../storage/system-errors.ts'
import { type Checkpoint, latestCheckpoint } from '../checkpoint.ts'

const planName = 'plan.json'
const rangesFolder = (folder: string) => join(folder, 'ranges')

/** The folder for the parts of one range. */
export const rangeFolder = (folder: string, range: number): string =>
  join(rangesFolder(folder), String(range).padStart(2, '0'))

export interface KeptRanges {
  plan: RangePlan
  /** The latest checkpoint of each range; undefined where nothing was read yet. */
  checkpoints: (Checkpoint | undefined)[]
}

/**
 * Loads how a read is divided, and how far its ranges have come; undefined if it is not divided.
 *
 * @throws {PartsDamagedError}
 */
export async function loadRanges(folder: string): Promise<KeptRanges | undefined> {
  const plan = await loadRangePlan(folder)
  if (plan === undefined) return undefined
  const checkpoints = await Promise.all(
    plan.ranges.map((_, range) => latestCheckpoint(rangeFolder(folder, range))),
  )
  return { plan, checkpoints }
}

/** @throws {PartsDamagedError} the plan is unreadable */
export async function loadRangePlan(folder: string): Promise<RangePlan | undefined> {
  const path = join(rangesFolder(folder), planName)
  try {
    return JSON.parse(await readFile(path, 'utf8')) as RangePlan
  } catch (cause) {
    if (isSystemError(cause) && cause.code === 'ENOENT') return undefined
    throw new PartsDamagedError(`The plan of a read, ${path}, can't be read. Run the export again.`, {
      cause,
    })
  }
}

/**
 * Keeps how a read is divided. The first plan stays, also if another attempt brings one later: ranges that are being
 * read under a plan must never meet the bounds of another.
 */
export async function keepRangePlan(folder: string, plan: RangePlan): Promise<void> {
  const made = join(folder, `ranges.${randomUUID().slice(0, 8)}.tmp`)
  await mkdir(made)
  await writeNew(join(made, planName), JSON.stringify(plan))
  await syncPath(made)
  try {
    // A folder that holds something is never replaced.
    await rename(made, rangesFolder(folder))
  } catch (error) {
    await rm(made, { recursive: true })
    if (!isSystemError(error) || !['ENOTEMPTY', 'EEXIST'].includes(error.code ?? '')) throw error
  }
  await syncPath(folder)
}
