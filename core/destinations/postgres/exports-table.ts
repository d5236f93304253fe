import { lossesFoundBy, toCoverage, type Before } from '../coverage.ts'
import type { Publication } from '../destination.ts'
import { manifestSchema, type Manifest } from '../manifest/manifest.ts'
import { literal, quote } from '../sql.ts'
import type { Row, Session } from './session.ts'
import { columnsTable, type Found } from './tables.ts'

// The warehouse's own tables: its owner, the export of each run, what it rejected, and what each table holds.

export const ownerTable = '_warehouse'
const exportsTable = '_exports'
export const rejectedTable = '_rejected'
const heldTable = '_held'

/** Creates those that are missing. */
export async function createOwnTables(session: Session, { columns }: Found): Promise<void> {
  const definitions = {
    [ownerTable]:
      'workspace text not null, base_url text not null, mode text not null, created_at timestamptz not null',
    [columnsTable]: `table_name text not null, column_name text not null, kind text not null, note text not null,
      primary key (table_name, column_name)`,
    [exportsTable]: `run text not null, resource text not null, mode text not null, filters json not null, capped boolean not null,
      verdict text not null, reasons json not null, scope json not null, warnings json not null, read_at timestamptz not null,
      complete_through timestamptz, rows bigint not null, deleted bigint not null, marks_deletes boolean not null,
      published_at timestamptz not null, manifest json not null, primary key (run, resource)`,
    [rejectedTable]: 'run text not null, resource text not null, line text not null',
    [heldTable]: `resource text not null, table_name text not null, held text not null, primary key (resource, table_name)`,
  }
  for (const [name, definition] of Object.entries(definitions))
    if (!columns.has(name)) await session.run(`create table ${session.nameOf(name)} (${definition})`)
}

const toManifests = (rows: readonly Row[]): Manifest[] =>
  rows.map((row) => manifestSchema.parse(JSON.parse(row['manifest'] ?? '')))

/** Finds the manifest of a run's export of a resource. */
export async function findExport(
  session: Session,
  { columns }: Found,
  { run, resource }: Pick<Publication, 'run' | 'resource'>,
): Promise<Manifest | undefined> {
  if (!columns.has(exportsTable)) return undefined
  const rows = await session.all(
    `select manifest from ${session.nameOf(exportsTable)} where run = $1 and resource = $2`,
    [run, resource],
  )
  return toManifests(rows)[0]
}

/** Finds the last export of each resource. */
export async function lastExports(session: Session, { columns }: Found): Promise<Manifest[]> {
  if (!columns.has(exportsTable)) return []
  const rows = await session.all(
    `select distinct on (resource) manifest from ${session.nameOf(exportsTable)} order by resource, read_at desc, published_at desc`,
  )
  return toManifests(rows)
}

/** Writes the row of an export, read by people and later publications, replacing any earlier one. */
export async function writeExport(
  session: Session,
  manifest: Manifest,
  { isProof }: { isProof: boolean },
): Promise<void> {
  const { run, resource, mode, filters, capped, verdict, reasons, scope, warnings = [] } = manifest
  const json = JSON.stringify
  const cells = {
    run,
    resource,
    mode,
    filters: json(filters),
    capped,
    verdict,
    reasons: json(reasons),
    scope: json(scope),
    warnings: json(warnings),
    read_at: manifest.startedAt,
    complete_through: manifest.completeThrough,
    rows: manifest.tables[0]?.rows ?? 0,
    deleted: manifest.deletes?.marked ?? 0,
    marks_deletes: isProof,
    published_at: manifest.publishedAt,
    manifest: json(manifest),
  }
  const names = Object.keys(cells)
  await session.run(
    `insert into ${session.nameOf(exportsTable)} (${names.join(', ')}) values (${names.map((_, index) => `$${index + 1}`).join(', ')})
    on conflict (run, resource) do update set ${names.map((name) => `${name} = excluded.${name}`).join(', ')}`,
    Object.values(cells),
  )
}

type View = Pick<Publication, 'resource' | 'filters'>

/** Finds the exports of a list, in order, from the last whole one on; without one, the last export alone. */
async function exportsSinceWhole(session: Session, { resource, filters }: View): Promise<Manifest[]> {
  const exports = session.nameOf(exportsTable)
  const rows = await session.all(
    `select manifest from ${exports} where resource = $1 and read_at >= (
      select coalesce(max(read_at) filter (
        where mode = 'full' and verdict = 'proven' and not capped and filters::text = $2), max(read_at))
      from ${exports} where resource = $1)
    order by read_at, published_at`,
    [resource, JSON.stringify(filters)],
  )
  return toManifests(rows)
}

/** How far the exports of a list reach, if the warehouse holds what they left. */
export const coverageOfExports = async (session: Session, view: View): Promise<number | undefined> =>
  toCoverage(await exportsSinceWhole(session, view), view)

/** How far the exports of a list reach, and whether the warehouse still holds what they left. */
export async function findCoverage(session: Session, found: Found, view: View): Promise<Before> {
  if (!found.columns.has(exportsTable)) return { through: undefined, changed: [], lost: {} }
  const manifests = await exportsSinceWhole(session, view)
  const tables = manifests.flatMap((manifest) => manifest.tables.map(({ name }) => name))
  const changed = await findChanged(session, found, { resource: view.resource, tables })
  return {
    through: changed.length > 0 ? undefined : toCoverage(manifests, view),
    changed,
    lost: manifests.at(-1)?.lost ?? {},
  }
}

/**
 * Finds the tables of a resource that no longer hold what its last publication left there, as far as numbers show: the live
 * rows, the marked ones, and the sums of their times. So somebody has removed, added, marked or replaced rows, or dropped the
 * table. Rows whose other columns somebody changed look the same.
 */
async function findChanged(
  session: Session,
  found: Found,
  { resource, tables }: { resource: string; tables: readonly string[] },
): Promise<string[]> {
  const rows = found.columns.has(heldTable)
    ? await session.all(`select table_name, held from ${session.nameOf(heldTable)} where resource = $1`, [
        resource,
      ])
    : []
  const left = new Map(rows.map((row) => [row['table_name'] ?? '', row['held']]))
  const names = [...new Set([...left.keys(), ...tables])]
  const holds = await countRows(session, found, names)
  return names.filter((name) => left.get(name) === undefined || left.get(name) !== holds.get(name))
}

/** What tables hold, as a text each; without those that lack the columns that this counts. */
async function countRows(
  session: Session,
  { columns }: Pick<Found, 'columns'>,
  tables: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const isInstant = (table: string, column: string) =>
    columns.get(table)?.get(column) === 'timestamp with time zone'
  const sumOf = (name: string) =>
    `coalesce(sum((date_part('epoch', ${quote(name)}) * 1000000)::bigint) filter (where isfinite(${quote(name)})), 0)`
  const counts = tables
    .filter((name) => isInstant(name, '_read_at') && isInstant(name, '_deleted_at'))
    .map(
      (
        name,
      ) => `select ${literal(name)} as name, concat_ws(' ', count(*) - count("_deleted_at"), count("_deleted_at"),
        ${sumOf('_read_at')}, ${sumOf('_deleted_at')}) as held from ${session.nameOf(name)}`,
    )
  const rows = counts.length === 0 ? [] : await session.all(counts.join(' union all '))
  return new Map(rows.map((row) => [row['name'] ?? '', row['held'] ?? '']))
}

/** Records what the tables of a resource hold at the end of a publication. */
export async function writeHeld(
  session: Session,
  found: Pick<Found, 'columns'>,
  { resource, tables }: Pick<Publication, 'resource' | 'tables'>,
): Promise<void> {
  const holds = await countRows(
    session,
    found,
    tables.map(({ name }) => name),
  )
  const held = session.nameOf(heldTable)
  await session.run(`delete from ${held} where resource = $1`, [resource])
  await session.run(`insert into ${held} select $1, * from unnest($2::text[], $3::text[])`, [
    resource,
    [...holds.keys()],
    [...holds.values()],
  ])
}

/** What a published export has lost since: tables that somebody changed, then or before a later export. */
export async function findLost(session: Session, found: Found, existing: Manifest): Promise<string[]> {
  const { resource, run, startedAt } = existing
  const tables = existing.tables.map(({ name }) => name)
  const lost = new Set(await findChanged(session, found, { resource, tables }))
  if (existing.rejected.rows > 0 && !found.columns.has(rejectedTable)) lost.add(rejectedTable)
  const later = await session.all(
    `select manifest from ${session.nameOf(exportsTable)} where resource = $1 and run <> $2 and read_at >= $3`,
    [resource, run, startedAt],
  )
  for (const manifest of toManifests(later))
    for (const name of lossesFoundBy(manifest)) if (tables.includes(name)) lost.add(name)
  return [...lost]
}
