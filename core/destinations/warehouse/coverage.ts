import { isDeepStrictEqual } from 'node:util'
import { isOfAll, readOf } from './deletes.ts'
import type { Publication } from '../destination.ts'
import type { Manifest, ReadFacts } from '../manifest.ts'

/** A list in a warehouse before a publication. */
export interface Before {
  /** The end of what its exports cover, in ms since 1970: see `Destination.coveredThrough`. */
  through: number | undefined
  /** The tables that are not as the last publication left them. */
  changed: readonly string[]
  /** The tables that lack rows which no export has brought back, each with the run that found so. */
  lost: Readonly<Record<string, string>>
}

/**
 * How far the exports of a list reach without a gap.
 * @param manifests in order, from the last proven export of the whole list on
 */
export function toCoverage(
  manifests: readonly Manifest[],
  view: Pick<Publication, 'filters'>,
): number | undefined {
  let covered: number | undefined
  for (const manifest of manifests) {
    if (lossesFoundBy(manifest).length > 0) covered = undefined
    if (manifest.verdict !== 'proven' || manifest.capped || manifest.completeThrough === null) continue
    if (!isDeepStrictEqual(manifest.filters, { ...view.filters })) continue
    const { mode, changedSince, completeThrough } = manifest
    const joins =
      mode === 'full'
        ? covered !== undefined || isEverythingThere(manifest)
        : covered !== undefined && Date.parse(String(changedSince)) <= covered
    if (joins) covered = Math.max(covered ?? -Infinity, Date.parse(completeThrough))
  }
  return covered
}

/**
 * Whether the warehouse holds all that a proven read of the list brought. A record that was left as it is, because it is newer
 * there, may lack child rows that somebody removed.
 */
const isEverythingThere = ({ lost = {}, tables }: Manifest): boolean =>
  Object.keys(lost).length === 0 || !hasKept(tables)

/** Whether a publication left rows as they were, because they are newer. */
export const hasKept = (tables: readonly { kept?: number | undefined }[]): boolean =>
  tables.some(({ kept = 0 }) => kept > 0)

/** The tables whose loss was found when an export was published. */
export const lossesFoundBy = ({ run, lost = {} }: Pick<Manifest, 'run' | 'lost'>): string[] =>
  Object.entries(lost).flatMap(([table, foundBy]) => (foundBy === run ? [table] : []))

/** The tables that somebody has changed, and that no export has brought back yet. */
export const lackingOf = ({ changed, lost }: Before): string[] => [
  ...new Set([...changed, ...Object.keys(lost)]),
]

/** Whether a publication brings back all that the warehouse lacks: it is of the whole list, and left nothing as it was. */
const restores = (publication: Publication, tables: Manifest['tables']): boolean =>
  isOfAll(readOf(publication)) && !hasKept(tables)

/** The facts of a read as they are true of the warehouse: the changes of an incremental read are no list without the rest. */
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

/** The tables that lack rows after a publication. */
export const lostAfter = (
  publication: Publication,
  tables: Manifest['tables'],
  { lost, changed }: Before,
): Readonly<Record<string, string>> =>
  restores(publication, tables)
    ? {}
    : { ...lost, ...Object.fromEntries(changed.map((table) => [table, publication.run])) }

/** Tells people that somebody has changed tables, unless the verdict does. */
export function changedWarnings(
  publication: Publication,
  tables: Manifest['tables'],
  { changed }: Before,
): string[] {
  const { mode } = publication
  if (changed.length === 0 || mode === 'incremental') return []
  const next = restores(publication, tables) ? 'This export' : 'The next proven export of the whole list'
  const how =
    mode === 'byId' ? 'Fetch the missing documents again.' : `${next} brings back what the service still has.`
  return [`Somebody has removed, added or marked rows of ${changed.join(', ')} since the last export. ${how}`]
}
