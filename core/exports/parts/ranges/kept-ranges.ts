import { join } from 'node:path'
import { PartsDamagedError } from '../../../destinations/errors.ts'
import type { RangePlan } from '../../../reading/plan-read.ts'
import type { SharedFolder } from '../../../storage/cached.ts'
import { type Checkpoint, latestCheckpoint } from '../checkpoint.ts'

const planName = 'plan.json'
const rangesFolder = (folder: string) => join(folder, 'ranges')

/** The folder for the parts of one range. */
export const rangeFolder = (folder: string, range: number): string =>
  join(rangesFolder(folder), String(range).padStart(2, '0'))

interface Place {
  shared: SharedFolder
  /** The folder of the list's parts. */
  folder: string
}

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
export async function loadRanges({ shared, folder }: Place): Promise<KeptRanges | undefined> {
  const plan = await loadRangePlan({ shared, folder })
  if (plan === undefined) return undefined
  const checkpoints = await Promise.all(
    plan.ranges.map((_, range) => latestCheckpoint({ shared, folder: rangeFolder(folder, range) })),
  )
  return { plan, checkpoints }
}

/** @throws {PartsDamagedError} the plan is unreadable */
export async function loadRangePlan({ shared, folder }: Place): Promise<RangePlan | undefined> {
  const path = join(rangesFolder(folder), planName)
  const text = await shared.read(path)
  if (text === undefined) return undefined
  try {
    return JSON.parse(text) as RangePlan
  } catch (cause) {
    throw new PartsDamagedError(`The plan of a read, ${path}, can't be read. Run the export again.`, {
      cause,
    })
  }
}

/**
 * Keeps how a read is divided. The first plan stays, also if another attempt brings one later: ranges that are being
 * read under a plan must never meet the bounds of another.
 */
export async function keepRangePlan({ shared, folder, plan }: Place & { plan: RangePlan }): Promise<void> {
  await shared.create(join(rangesFolder(folder), planName), JSON.stringify(plan))
}
