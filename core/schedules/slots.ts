import { findProven, type PublishedNote } from '../exports/publication-log.ts'

/** One time at which a schedule was to export something, in ms since 1970. */
export interface Night {
  /** As Temporal starts it: with its jitter. */
  at: number
  /** The next one's; a read that began then belongs to that one. */
  next: number
  /** The workflow id that Temporal puts the scheduled time behind. */
  workflowId: string
  jitterMs: number
}

/** What an export of a night has to have published. */
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
 * What of a night has no proven export. Only when a read began counts, never when it was published. The night's own
 * run counts however late it read; any other, one that somebody started by hand say, if its read began between this
 * night and the next.
 */
export async function lacksOf(options: {
  night: Night
  expected: readonly Expected[]
  published: readonly PublishedNote[]
}): Promise<Expected[]> {
  const { night, expected, published } = options
  const when = (note: PublishedNote) => isOfNight({ note, night })
  const found = await Promise.all(expected.map((one) => findProven({ published, wanted: { ...one, when } })))
  return expected.filter((_, index) => found[index] === undefined)
}

function isOfNight({ note, night }: { note: PublishedNote; night: Night }): boolean {
  const startedAt = Date.parse(note.startedAt)
  const slot = slotOf({ run: note.run, night })
  if (slot !== undefined && startedAt >= slot) return true
  return startedAt >= night.at && startedAt < night.next
}

/**
 * The time that the night's own run is named after: the one it was scheduled for, without jitter, to the second.
 * Undefined for any other run.
 */
function slotOf({ run, night }: { run: string; night: Night }): number | undefined {
  const { workflowId, at, jitterMs } = night
  if (!run.startsWith(`${workflowId}-`)) return undefined
  const [time] = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/.exec(run.slice(workflowId.length + 1)) ?? []
  if (time === undefined) return undefined
  const nominal = Date.parse(time)
  return nominal <= at && nominal > at - jitterMs - 1000 ? nominal : undefined
}

/** Since when a schedule has had the times that it has now. */
export const changedAt = ({
  info,
}: {
  info: { lastUpdatedAt?: Date | undefined; createdAt: Date }
}): number => (info.lastUpdatedAt ?? info.createdAt).getTime()

export interface Missed {
  schedule: string
  /** When it was to run, and by when it was to be proven. */
  at: string
  by: string
  /** One sentence: what is not there, and what became of the run. */
  says: string
}
