import type { Publication } from '../destination.ts'
import { manifestSchema, type Manifest } from '../manifest.ts'
import { checkRows, readLines } from '../parts/read-parts.ts'
import { instant, literal } from '../sql.ts'
import { toOwner } from './admission.ts'
import { type Before, lossesFoundBy, toCoverage } from './coverage.ts'
import { columnsTable, type Database, type Tables } from './tables.ts'

// The warehouse's own tables: its owner, the export of each run, what it rejected, and what each table holds.

export const ownerTable = '_warehouse'
const exportsTable = '_exports'
const rejectedTable = '_rejected'
const heldTable = '_held'

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
  [heldTable]:
    'resource text not null, table_name text not null, held text not null, primary key (resource, table_name)',
}

/** Creates those that are missing, and records the owner. */
export async function createOwnTables(db: Database, tables: Tables, publication: Publication): Promise<void> {
  for (const [name, definition] of Object.entries(definitions))
    if (!tables.has(name)) await db.run(`create table ${db.nameOf(name)} (${definition})`)
  if (tables.has(ownerTable)) return
  const owner = Object.values(toOwner(publication)).map(literal)
  await db.run(`insert into ${db.nameOf(ownerTable)} values (${owner.join(', ')}, current_timestamp)`)
}

async function findManifests(db: Database, which: string, columns = 'manifest'): Promise<Manifest[]> {
  const rows = await db.all(`select ${columns} from ${db.nameOf(exportsTable)} ${which}`)
  return rows.map((row) => manifestSchema.parse(JSON.parse(row['manifest'] ?? '')))
}

/** Finds the manifest of a run's export of a resource. */
export async function findExport(
  db: Database,
  tables: Tables,
  { run, resource }: Pick<Publication, 'run' | 'resource'>,
): Promise<Manifest | undefined> {
  if (!tables.has(exportsTable)) return undefined
  const [found] = await findManifests(db, `where run = ${literal(run)} and resource = ${literal(resource)}`)
  return found
}

/** Finds the last export of each resource. */
export async function lastExports(db: Database, tables: Tables): Promise<Manifest[]> {
  if (!tables.has(exportsTable)) return []
  const order = 'order by resource, read_at desc, published_at desc, run desc'
  return await findManifests(db, order, 'distinct on (resource) manifest')
}

/** Writes the row of an export, read by people and later publications, replacing any earlier one. */
export async function writeExport(
  db: Database,
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
  const names = Object.keys(cells)
  const others = names.filter((name) => name !== 'run' && name !== 'resource')
  await db.run(`insert into ${db.nameOf(exportsTable)} (${names.join(', ')})
    values (${Object.values(cells).join(', ')})
    on conflict (run, resource) do update set ${others.map((name) => `${name} = excluded.${name}`).join(', ')}`)
}

type View = Pick<Publication, 'resource' | 'filters'>

/** Finds the exports of a list, in order, from the last whole one on; without one, the last export alone. */
async function exportsSinceWhole(db: Database, { resource, filters }: View): Promise<Manifest[]> {
  const ofList = `resource = ${literal(resource)}`
  const isWhole = `mode = 'full' and verdict = 'proven' and not capped
    and filters::text = ${literal(JSON.stringify(filters))}`
  return await findManifests(
    db,
    `where ${ofList} and read_at >= (select coalesce(max(read_at) filter (where ${isWhole}), max(read_at))
      from ${db.nameOf(exportsTable)} where ${ofList}) order by read_at, published_at, run`,
  )
}

/** How far the exports of a list reach, if the warehouse holds what they left. */
export const coverageOfExports = async (db: Database, view: View): Promise<number | undefined> =>
  toCoverage(await exportsSinceWhole(db, view), view)

/** How far the exports of a list reach, and which tables somebody has changed since. */
export async function lookBack(db: Database, tables: Tables, view: View): Promise<Before> {
  if (!tables.has(exportsTable)) return { through: undefined, changed: [], lost: {} }
  const manifests = await exportsSinceWhole(db, view)
  const changed = await findChanged(db, tables, view.resource, manifests)
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
  db: Database,
  tables: Tables,
  resource: string,
  manifests: readonly Manifest[],
): Promise<string[]> {
  const rows = tables.has(heldTable)
    ? await db.all(
        `select table_name, held from ${db.nameOf(heldTable)} where resource = ${literal(resource)}`,
      )
    : []
  const left = new Map(rows.map((row) => [row['table_name'] ?? '', row['held']]))
  const published = manifests.flatMap((manifest) => manifest.tables.map(({ name }) => name))
  const names = [...new Set([...left.keys(), ...published])]
  const holds = await countRows(db, tables, names)
  return names.filter((name) => left.get(name) === undefined || left.get(name) !== holds.get(name))
}

/** What tables hold, as a text each; without those that lack the columns that this counts. */
async function countRows(
  db: Database,
  tables: Tables,
  names: readonly string[],
): Promise<ReadonlyMap<string, string>> {
  const isInstant = (table: string, name: '_read_at' | '_deleted_at') =>
    tables.get(table)?.get(name) === db.typeOf({ name, kind: 'timestamp' })
  const sumOf = (name: string) =>
    `coalesce(sum(${db.microseconds(name)}) filter (where isfinite(${name})), 0)`
  const counts = names
    .filter((table) => isInstant(table, '_read_at') && isInstant(table, '_deleted_at'))
    .map(
      (
        table,
      ) => `select ${literal(table)} as name, concat_ws(' ', count(*) - count(_deleted_at), count(_deleted_at),
        ${sumOf('_read_at')}, ${sumOf('_deleted_at')}) as held from ${db.nameOf(table)}`,
    )
  const rows = counts.length === 0 ? [] : await db.all(counts.join(' union all '))
  return new Map(rows.map((row) => [row['name'] ?? '', row['held'] ?? '']))
}

/** Records what the tables of a resource hold at the end of a publication. */
export async function writeHeld(
  db: Database,
  { resource, tables }: Pick<Publication, 'resource' | 'tables'>,
): Promise<void> {
  const names = tables.map(({ name }) => name)
  const rows = [...(await countRows(db, await db.describe(), names))].map(
    (held) => `(${[resource, ...held].map(literal).join(', ')})`,
  )
  await db.run(`delete from ${db.nameOf(heldTable)} where resource = ${literal(resource)}`)
  await db.run(`insert into ${db.nameOf(heldTable)} values ${rows.join(', ')}`)
}

/** What a published export has lost since: tables that somebody changed, then or before a later export. */
export async function findLost(db: Database, tables: Tables, existing: Manifest): Promise<string[]> {
  const { resource, run, startedAt } = existing
  const own = existing.tables.map(({ name }) => name)
  const lost = new Set(await findChanged(db, tables, resource, [existing]))
  if (existing.rejected.rows > 0 && !tables.has(rejectedTable)) lost.add(rejectedTable)
  const later = await findManifests(
    db,
    `where resource = ${literal(resource)} and run <> ${literal(run)} and read_at >= ${instant(startedAt)}
      order by read_at, published_at, run`,
  )
  for (const manifest of later)
    for (const name of lossesFoundBy(manifest)) if (own.includes(name)) lost.add(name)
  return [...lost]
}

/** Lines per statement. */
const batch = 200

/**
 * Stores rejected items beside the records and returns their number.
 * @throws {RowsMissingError}
 */
export async function keepRejected(db: Database, publication: Publication): Promise<number> {
  const { rejected = [], run, resource, signal } = publication
  let rows = 0
  let values: string[] = []
  const flush = async () => {
    if (values.length > 0) await db.run(`insert into ${db.nameOf(rejectedTable)} values ${values.join(', ')}`)
    values = []
  }
  for await (const line of readLines(rejected, { signal })) {
    rows++
    values.push(`(${[run, resource, line].map(literal).join(', ')})`)
    if (values.length === batch) await flush()
  }
  await flush()
  checkRows(rejected, { table: 'rejected', rows, where: db.where })
  return rows
}
