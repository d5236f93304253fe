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
 * What of a night has no proven export. The night's own run counts however late it began; any other, one that
 * somebody started by hand say, if its read began between this night and the next.
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
  return isItsRun({ run: note.run, night }) || (startedAt >= night.at && startedAt < night.next)
}

/** Temporal names a scheduled run after the time it was scheduled for, without jitter, to the second. */
function isItsRun({ run, night }: { run: string; night: Night }): boolean {
  const { workflowId, at, jitterMs } = night
  if (!run.startsWith(`${workflowId}-`)) return false
  const [time] = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/.exec(run.slice(workflowId.length + 1)) ?? []
  if (time === undefined) return false
  const nominal = Date.parse(time)
  return nominal <= at && nominal > at - jitterMs - 1000
}
