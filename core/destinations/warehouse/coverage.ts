import type { Publication } from '../destination.ts'
import { changesUpTo, type Manifest, type PublishedTable, type ReadFacts } from '../manifest.ts'
import { literal } from '../layout.ts'
import { isOfAll, readOf } from './deletes.ts'
import { type Database, findTables, type Found } from './tables.ts'

// Tells whether a warehouse still holds what its exports published, and how far those reach.

export const heldTable = '_held'

/** A row of `_held`: a resource as its last publication left it. */
export interface Held {
  /** What each of its tables held, as `countRows` counts it. */
  held: Readonly<Record<string, string>>
  /** The tables that lack rows which no export has brought back. */
  lost: readonly string[]
  /** The time up to which the exports with the same filters reach without a gap, by `keyOf` their filters. */
  covered: Readonly<Record<string, string>>
}

/** A resource before a publication. It covers nothing if somebody has changed a table. */
export interface Before extends Held {
  /** The tables that are not as the last publication left them. */
  changed: readonly string[]
}

type View = Pick<Publication, 'filters'>

const keyOf = ({ filters }: View) => JSON.stringify(filters, Object.keys(filters).toSorted())

/** The end of what is covered, in ms since 1970. */
export function coveredThrough({ covered }: Pick<Held, 'covered'>, view: View): number | undefined {
  const through = covered[keyOf(view)]
  return through === undefined ? undefined : Date.parse(through)
}

/**
 * Finds the tables that no longer hold what their last publication left there, as far as numbers show: the live rows, the
 * marked ones, and the sums of their times; and those that lack a column. So somebody has removed, added, marked or replaced
 * rows, or dropped the table or a column. Rows whose other columns somebody changed look the same.
 * @param published the tables of the resource, if an export has published them
 */
export async function lookBack(
  db: Database,
  { columns: tables, cut }: Found,
  { resource, published }: { resource: string; published: readonly string[] },
): Promise<Before> {
  const [row] = tables.has(heldTable)
    ? await db.all(
        `select held, lost, covered from ${db.nameOf(heldTable)} where resource = ${literal(resource)}`,
      )
    : []
  const parse = <T>(column: string, missing: T) => JSON.parse(row?.[column] ?? JSON.stringify(missing)) as T
  const held = parse<Held['held']>('held', {})
  const names = row === undefined ? published : Object.keys(held)
  const isInstant = (table: string, name: '_read_at' | '_deleted_at') =>
    tables.get(table)?.get(name) === db.typeOf({ name, kind: 'timestamp' })
  const holds = await countRows(
    db,
    names.filter((table) => isInstant(table, '_read_at') && isInstant(table, '_deleted_at')),
  )
  const changed = names.filter(
    (name) => held[name] === undefined || held[name] !== holds[name] || cut.has(name),
  )
  return {
    held,
    changed,
    lost: parse<string[]>('lost', []),
    covered: changed.length > 0 ? {} : parse<Held['covered']>('covered', {}),
  }
}

/** How far the exports of a list reach now: see `Destination.coveredThrough`. */
export async function coverageOf(
  db: Database,
  { resource, filters }: Pick<Publication, 'resource' | 'filters'>,
): Promise<number | undefined> {
  const before = await lookBack(db, await findTables(db), { resource, published: [] })
  return coveredThrough(before, { filters })
}

/** What tables hold, as a text each. */
async function countRows(db: Database, names: readonly string[]): Promise<Held['held']> {
  const sumOf = (name: string) =>
    `coalesce(sum((date_part('epoch', ${name}) * 1000000)::bigint) filter (where isfinite(${name})), 0)`
  const counts = names.map(
    (table) => `select ${literal(table)} as name, concat_ws(' ', count(*) - count(_deleted_at),
      count(_deleted_at), ${sumOf('_read_at')}, ${sumOf('_deleted_at')}) as held from ${db.nameOf(table)}`,
  )
  const rows = counts.length === 0 ? [] : await db.all(counts.join(' union all '))
  const holds = new Map(rows.map((row) => [row['name'], row['held'] ?? '']))
  return Object.fromEntries(names.map((name) => [name, holds.get(name)!]))
}

/** Records what the tables of a resource hold at the end of a publication. */
export async function writeHeld(
  db: Database,
  { resource, tables }: Pick<Publication, 'resource' | 'tables'>,
  { lost, covered }: Omit<Held, 'held'>,
): Promise<void> {
  const held = await countRows(
    db,
    tables.map(({ name }) => name),
  )
  const values = [resource, ...[held, lost, covered].map((value) => JSON.stringify(value))]
  await db.run(`insert into ${db.nameOf(heldTable)} values (${values.map(literal).join(', ')})
    on conflict (resource) do update set held = excluded.held, lost = excluded.lost, covered = excluded.covered`)
}

/** The tables that somebody has changed, and that no export has brought back yet. */
export const lackingOf = ({ changed, lost }: Before): string[] => [...new Set([...lost, ...changed])]

/** Whether a publication left rows as they were, because they are newer. */
export const hasKept = (tables: readonly Pick<PublishedTable, 'kept'>[]): boolean =>
  tables.some(({ kept = 0 }) => kept > 0)

/** Whether a publication brings back all that the warehouse lacks: it is of the whole list, and left nothing as it was. */
const restores = (publication: Publication, tables: readonly PublishedTable[]): boolean =>
  isOfAll(readOf(publication)) && !hasKept(tables)

const joins = ({ covered }: Before, view: View, changedSince: string | undefined): boolean =>
  Date.parse(changedSince ?? '') <= (coveredThrough({ covered }, view) ?? -Infinity)

/** What the warehouse lacks and covers after a publication. */
export function toHeld(publication: Publication, manifest: Manifest, before: Before): Omit<Held, 'held'> {
  const { verdict, mode, capped, tables, changedSince } = manifest
  const upTo = changesUpTo(manifest)
  const lost = restores(publication, tables) ? [] : lackingOf(before)
  const { covered } = before
  const through = coveredThrough(before, publication)
  // A record that was left as it is, because it is newer there, may lack child rows that somebody removed.
  const reaches =
    mode === 'full'
      ? through !== undefined || lost.length === 0 || !hasKept(tables)
      : joins(before, publication, changedSince)
  if (verdict !== 'proven' || capped || upTo === undefined || !reaches) return { lost, covered }
  const latest = Math.max(through ?? -Infinity, upTo)
  return { lost, covered: { ...covered, [keyOf(publication)]: new Date(latest).toISOString() } }
}

/** The facts of a read as they are true of the warehouse: the changes of an incremental read are no list without the rest. */
export function factsThere(publication: Publication, facts: ReadFacts, before: Before): ReadFacts {
  const { changedSince } = facts
  if (publication.mode !== 'incremental' || facts.verdict !== 'proven') return facts
  if (joins(before, publication, changedSince)) return facts
  const lacking = lackingOf(before)
  const why =
    lacking.length > 0
      ? `somebody has removed, added or marked rows, or dropped columns, of ${lacking.join(', ')} in the warehouse since an earlier export`
      : `the warehouse has no proven export of the whole list that reaches ${changedSince}`
  return {
    ...facts,
    verdict: 'unproven',
    reasons: [
      `${why}, so records that have not changed may be missing there; the next export reads the whole list`,
    ],
    scope: [
      `The records that changed since ${changedSince} are here. Others may be missing; it is unknown which.`,
    ],
  }
}

/** Tells people that somebody has changed tables, unless the verdict does. */
export function changedWarnings(
  publication: Publication,
  tables: readonly PublishedTable[],
  { changed }: Before,
): string[] {
  const { mode } = publication
  if (changed.length === 0 || mode === 'incremental') return []
  const next = restores(publication, tables) ? 'This export' : 'The next proven export of the whole list'
  const how =
    mode === 'byId' ? 'Fetch the missing documents again.' : `${next} brings back what the service still has.`
  return [
    `Somebody has removed, added or marked rows, or dropped columns, of ${changed.join(', ')} since the last export. ${how}`,
  ]
}
