import type { Publication } from '../destination.ts'
import { manifestSchema, type Manifest } from '../manifest.ts'
import { checkRows, readLines } from '../parts.ts'
import { instant, literal } from '../layout.ts'
import { heldTable } from './coverage.ts'
import { columnsTable, type Database, type Tables } from './tables.ts'

// The warehouse's own tables: its owner, the export of each run, what it rejected, and what each table holds.

export const ownerTable = '_warehouse'
export const exportsTable = '_exports'
export const rejectedTable = '_rejected'

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
    'resource text not null primary key, held json not null, lost json not null, covered json not null',
}

/** The owner of a warehouse, by the columns of its table. */
export const toOwner = ({
  workspace,
  baseUrl,
  testMode,
}: Pick<Publication, 'workspace' | 'baseUrl' | 'testMode'>) => ({
  workspace,
  base_url: toAddress(baseUrl),
  mode: testMode ? 'test' : 'live',
})

/** Strips the trailing slash and any login from an address. */
function toAddress(baseUrl: string): string {
  const url = new URL(baseUrl)
  url.username = ''
  url.password = ''
  return url.href.replace(/\/+$/, '')
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

/** Lines per statement. */
const batch = 200

/**
 * Stores rejected items beside the records and returns their number.
 * @throws {PartsDamagedError}
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
