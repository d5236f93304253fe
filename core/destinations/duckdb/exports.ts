import { type Before, lossesFoundBy, toCoverage } from '../coverage.ts'
import type { Publication } from '../destination.ts'
import { manifestSchema, type Manifest } from '../manifest/manifest.ts'
import { instant, literal, quote } from '../sql.ts'
import type { DuckDb } from './open.ts'
import { describe, type Tables } from './tables.ts'

// What the warehouse knows of its exports: their manifests in `_exports`, and in `_held` what the last one left.

async function findManifests(db: DuckDb, which: string): Promise<Manifest[]> {
  const rows = await db.all(`select manifest from _exports ${which}`)
  return rows.map((row) => manifestSchema.parse(JSON.parse(row['manifest'] ?? '')))
}

/** Reads are published in the order in which they began. */
const order = 'read_at, published_at, run'

/** Finds the manifest of a run's export of a resource. */
export async function findExport(
  db: DuckDb,
  { run, resource }: Pick<Publication, 'run' | 'resource'>,
): Promise<Manifest | undefined> {
  const [found] = await findManifests(db, `where run = ${literal(run)} and resource = ${literal(resource)}`)
  return found
}

/** Finds the last export of each resource. */
export const lastExports = (db: DuckDb): Promise<Manifest[]> =>
  findManifests(
    db,
    'qualify row_number() over (partition by resource order by read_at desc, published_at desc, run desc) = 1',
  )

/** Writes the row of an export, read by people and later publications, replacing any earlier one. */
export async function writeExport(
  db: DuckDb,
  manifest: Manifest,
  { isProof }: { isProof: boolean },
): Promise<void> {
  const { run, resource, mode, filters, capped, verdict, reasons, scope, warnings = [], deletes } = manifest
  const json = (value: unknown) => `${literal(JSON.stringify(value))}::json`
  const cells = {
    run: literal(run),
    resource: literal(resource),
    mode: literal(mode),
    filters: json(filters),
    capped: `${capped}`,
    verdict: literal(verdict),
    reasons: json(reasons),
    scope: json(scope),
    warnings: json(warnings),
    read_at: instant(manifest.startedAt),
    complete_through: instant(manifest.completeThrough),
    rows: `${manifest.tables[0]?.rows ?? 0}`,
    deleted: `${deletes?.marked ?? 0}`,
    marks_deletes: `${isProof}`,
    published_at: instant(manifest.publishedAt),
    manifest: json(manifest),
  }
  await db.run(`insert or replace into _exports (${Object.keys(cells).join(', ')})
    values (${Object.values(cells).join(', ')})`)
}

/** Finds what a list's exports cover, and which tables somebody has changed since. */
export async function lookBack(
  db: DuckDb,
  { resource, filters }: Pick<Publication, 'resource' | 'filters'>,
): Promise<Before> {
  const tables = await describe(db)
  if (!tables.has('_exports')) return { through: undefined, changed: [], lost: {} }
  const ofList = `resource = ${literal(resource)}`
  const isWhole = `mode = 'full' and verdict = 'proven' and not capped
    and cast(filters as text) = ${literal(JSON.stringify(filters))}`
  // Those before the last whole export do not matter, however many they are.
  const manifests = await findManifests(
    db,
    `where ${ofList} and read_at >= (select coalesce(max(read_at) filter (where ${isWhole}), max(read_at))
      from _exports where ${ofList}) order by ${order}`,
  )
  const changed = await findChanged(db, resource, tables, manifests)
  const through = changed.length > 0 ? undefined : toCoverage(manifests, { filters })
  return { through, changed, lost: manifests.at(-1)?.lost ?? {} }
}

/**
 * The tables of a resource that no longer hold what its last publication left there, as far as numbers show: the live rows,
 * the marked ones, and the sums of their times. So somebody has removed, added, marked or replaced rows, or dropped the table.
 * Rows whose other columns somebody changed look the same.
 */
async function findChanged(
  db: DuckDb,
  resource: string,
  tables: Tables,
  manifests: readonly Manifest[],
): Promise<string[]> {
  const rows = tables.has('_held')
    ? await db.all(`select table_name, held from _held where resource = ${literal(resource)}`)
    : []
  const left = new Map(rows.map((row) => [row['table_name'] ?? '', row['held']]))
  const names = new Set([
    ...left.keys(),
    ...manifests.flatMap((manifest) => manifest.tables.map(({ name }) => name)),
  ])
  const changed: string[] = []
  for (const name of names) {
    const held = left.get(name)
    if (held === undefined || held !== (await countHeld(db, name, tables))) changed.push(name)
  }
  return changed
}

/** Records what the tables of a resource hold at the end of a publication. */
export async function writeHeld(
  db: DuckDb,
  { resource, tables }: Pick<Publication, 'resource' | 'tables'>,
): Promise<void> {
  const there = await describe(db)
  const rows: string[] = []
  for (const { name } of tables)
    rows.push(`(${[resource, name, (await countHeld(db, name, there)) ?? ''].map(literal).join(', ')})`)
  await db.run(`create table if not exists _held (resource text not null, table_name text not null, held text not null,
      primary key (resource, table_name));
    delete from _held where resource = ${literal(resource)};
    insert into _held values ${rows.join(', ')}`)
}

/** What a table holds, as a text; undefined without the table or the columns that this counts. */
async function countHeld(db: DuckDb, table: string, tables: Tables): Promise<string | undefined> {
  const columns = tables.get(table)
  const isInstant = (name: string) => columns?.get(name) === 'TIMESTAMP WITH TIME ZONE'
  if (!isInstant('_read_at') || !isInstant('_deleted_at')) return undefined
  const sumOf = (name: string) => `coalesce(sum(epoch_us(${name})) filter (where isfinite(${name})), 0)`
  const [row = {}] = await db.all(`select count(*) - count(_deleted_at) as live, count(_deleted_at) as marked,
    ${sumOf('_read_at')} as reads, ${sumOf('_deleted_at')} as marks from ${quote(table)}`)
  return Object.values(row).join(' ')
}

/** What a published export has lost since: tables that somebody changed, then or before a later export. */
export async function findLost(db: DuckDb, existing: Manifest): Promise<string[]> {
  const { resource, run } = existing
  const tables = await describe(db)
  const own = existing.tables.map(({ name }) => name)
  const lost = new Set(await findChanged(db, resource, tables, [existing]))
  if (existing.rejected.rows > 0 && !tables.has('_rejected')) lost.add('_rejected')
  const later = await findManifests(
    db,
    `where resource = ${literal(resource)} and run <> ${literal(run)} and read_at >= ${instant(existing.startedAt)} order by ${order}`,
  )
  for (const manifest of later)
    for (const name of lossesFoundBy(manifest)) if (own.includes(name)) lost.add(name)
  return [...lost]
}
