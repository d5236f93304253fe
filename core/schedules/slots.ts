import { resolve } from 'node:path'
import { listNames } from '../billing/resources/lists.ts'
import { exportInput } from '../exports/input.ts'
import { findProven } from '../exports/proven.ts'
import { placeOf } from '../exports/watermark.ts'

/** One time at which a schedule was due to export something, in ms since 1970. */
export interface ScheduleSlot {
  /** When Temporal starts it: with its jitter. */
  at: number
  /** The next slot's; a read that began then belongs to that one. */
  next: number
  /** The workflow id to which Temporal appends the scheduled time. */
  workflowId: string
  jitterMs: number
}

/** A list that the export of a slot must have published. */
export interface Expected {
  resource: string
  destination: string
  mode: 'full' | 'incremental'
  filters: Readonly<Record<string, string>>
  place?: string | undefined
  excluded: readonly string[]
  hashed: readonly string[]
  forExcel: boolean
}

/**
 * The lists that an export with this input must publish, by destination; undefined if the input is not valid, which
 * happens when a schedule is changed in the Temporal UI.
 * @param dataDir the data folder, to which the place that an input names is relative
 */
export function toExpected(input: unknown, dataDir: string): Expected[] | undefined {
  const parsed = exportInput.safeParse(input ?? {})
  if (!parsed.success) return undefined
  const asked = parsed.data
  const { resources = [...listNames], to = ['csv'], mode = 'full', filters = {} } = asked
  const { exclude: excluded = [], hash: hashed = [], forExcel = false, schema, out } = asked
  const target = { schema, out: out && resolve(dataDir, out) }
  return resources.flatMap((resource) =>
    to.map((destination) => {
      const place = placeOf(target, destination)
      const as = { excluded, hashed, forExcel: forExcel && destination === 'csv' }
      return { resource, destination, mode, filters, place, ...as }
    }),
  )
}

/**
 * The expected lists of a slot that have no proven export. Only when a read began counts, never when it was published.
 * The slot's own run counts however late it read; any other run (started by hand, say) if its read began between this
 * slot and the next.
 */
export async function missingExports(options: {
  slot: ScheduleSlot
  expected: readonly Expected[]
  published: Parameters<typeof findProven>[0]['published']
  files: Parameters<typeof findProven>[0]['files']
}): Promise<Expected[]> {
  const { slot, expected, published, files } = options
  const when = (one: Parameters<typeof isOfSlot>[0]) => isOfSlot(one, slot)
  const found = await Promise.all(
    expected.map((list) => findProven({ published, files, wanted: { ...list, when } })),
  )
  return expected.filter((_, index) => found[index] === undefined)
}

function isOfSlot(published: { run: string; startedAt: string }, slot: ScheduleSlot): boolean {
  const startedAt = Date.parse(published.startedAt)
  const scheduledFor = scheduledTime({ run: published.run, slot })
  if (scheduledFor !== undefined && startedAt >= scheduledFor) return true
  return startedAt >= slot.at && startedAt < slot.next
}

/**
 * The time in the name of the slot's own run: the one it was scheduled for, without jitter, to the second. Undefined
 * for any other run.
 */
function scheduledTime({ run, slot }: { run: string; slot: ScheduleSlot }): number | undefined {
  const { workflowId, at, jitterMs } = slot
  if (!run.startsWith(`${workflowId}-`)) return undefined
  const [time] = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/.exec(run.slice(workflowId.length + 1)) ?? []
  if (time === undefined) return undefined
  const nominal = Date.parse(time)
  return nominal <= at && nominal > at - jitterMs - 1000 ? nominal : undefined
}

/** When a schedule was given its present times. */
export const changedAt = ({
  info,
}: {
  info: { lastUpdatedAt?: Date | undefined; createdAt: Date }
}): number => (info.lastUpdatedAt ?? info.createdAt).getTime()

/** A slot without a proven export. */
export interface MissedSlot {
  schedule: string
  /** When it was due, and by when it had to be proven. */
  at: string
  by: string
  /** One sentence: what is missing, and what happened to the run. */
  reason: string
}
