import type { Publication } from '../destination.ts'
import type { ReadFacts } from '../manifest/manifest.ts'
import { isOfAll } from './absence.ts'
import { findCoverage, type Coverage } from './coverage.ts'
import { readOf } from './deletes.ts'
import { isSurpassed, lastExport } from './export-row.ts'
import type { WarehouseSession } from './session.ts'

/** A list in the warehouse, as a publication finds it. */
export interface Before extends Coverage {
  /** The tables that lack rows, by the run that found so. */
  lost: Readonly<Record<string, string>>
  /** When the last export was published. */
  publishedAt: string | undefined
  /** Whether the publication has all that any export has brought: the whole list, and no read of later. */
  hasAll: boolean
}

export async function lookBack(session: WarehouseSession, publication: Publication): Promise<Before> {
  const { lost = {}, publishedAt } = (await lastExport(session, publication.resource)) ?? {}
  return {
    ...(await findCoverage(session, publication)),
    lost,
    publishedAt,
    hasAll: isOfAll(readOf(publication)) && !(await isSurpassed(session, publication)),
  }
}

/** The tables that somebody has changed, and that no export has brought back yet. */
export const lackingOf = ({ changed, lost }: Before): string[] => [
  ...new Set([...changed, ...Object.keys(lost)]),
]

/** The facts of a read as they are true of the warehouse: what an incremental one brings is no list without the rest. */
export function factsThere({ mode, facts }: Publication, before: Before): ReadFacts {
  const { changedSince } = facts
  const { through } = before
  const joins = through !== undefined && Date.parse(String(changedSince)) <= through
  if (mode !== 'incremental' || facts.verdict !== 'proven' || joins) return facts
  const lacking = lackingOf(before)
  const why =
    lacking.length > 0
      ? `somebody has removed, added or marked rows of ${lacking.join(', ')} in the warehouse since an earlier export`
      : `the warehouse has no proven export of the whole list that reaches ${String(changedSince)}`
  return {
    ...facts,
    verdict: 'unproven',
    reasons: [
      `${why}, so records that have not changed may be missing there; the next export reads the whole list`,
    ],
    scope: [
      `The records that changed since ${String(changedSince)} are here. Others may be missing; it is unknown which.`,
    ],
  }
}

/** What lacks rows after a publication. */
export const stillLost = (
  { run }: Publication,
  { lost, changed }: Before,
): Readonly<Record<string, string>> => ({
  ...lost,
  ...Object.fromEntries(changed.map((table) => [table, run])),
})

/** Tells people what somebody has changed, unless it is why the publication is not proven. */
export function changedWarnings(
  { mode }: Publication,
  { changed, isRestored }: Pick<Before, 'changed'> & { isRestored: boolean },
): string[] {
  if (changed.length === 0 || mode === 'incremental') return []
  const next = isRestored ? 'This export' : 'The next proven export of the whole list'
  const how =
    mode === 'byId' ? 'Fetch the missing documents again.' : `${next} brings back what the service still has.`
  return [`Somebody has removed, added or marked rows of ${changed.join(', ')} since the last export. ${how}`]
}

/** The time of a publication, which comes after all others whatever the clocks of the machines. */
export const laterThan = (last: string | undefined, now: string): string =>
  last === undefined || Date.parse(last) < Date.parse(now)
    ? now
    : new Date(Date.parse(last) + 1).toISOString()
