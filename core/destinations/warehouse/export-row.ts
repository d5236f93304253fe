import type { Publication } from '../destination.ts'
import { manifestSchema, type Manifest } from '../manifest/manifest.ts'
import type { ResultRow, WarehouseSession } from './session.ts'
import { instant, literal, quote } from '../sql.ts'
import { exportsTable } from './warehouse-owner.ts'

type Named = Pick<Publication, 'run' | 'resource'>

const inSchema = ({ schema }: WarehouseSession) => `${quote(schema)}.${quote(exportsTable)}`
const ofRun = ({ run, resource }: Named) => `run = ${literal(run)} and resource = ${literal(resource)}`

/** Finds the manifest of a run's export of a resource, if it is in the warehouse. */
export async function findExport(session: WarehouseSession, named: Named): Promise<Manifest | undefined> {
  return toManifests(await session.all(`select manifest from ${inSchema(session)} where ${ofRun(named)}`))[0]
}

/** Finds the manifests of a resource that were published after a time, oldest first. */
export async function exportsAfter(
  session: WarehouseSession,
  { resource, publishedAt }: Pick<Manifest, 'resource' | 'publishedAt'>,
): Promise<Manifest[]> {
  return toManifests(
    await session.all(`select manifest from ${inSchema(session)}
    where resource = ${literal(resource)} and published_at > ${instant(publishedAt)} order by published_at, run`),
  )
}

/** Finds the last export of each resource. */
export async function lastExports(session: WarehouseSession): Promise<Manifest[]> {
  return toManifests(
    await session.all(
      `select distinct on (resource) manifest from ${inSchema(session)} order by resource, read_at desc, published_at desc`,
    ),
  )
}

export const toManifests = (rows: readonly ResultRow[]): Manifest[] =>
  rows.map((row) => manifestSchema.parse(JSON.parse(row['manifest'] ?? '')))

/** Writes the row of an export, read by people and later publications, replacing any earlier one. */
export async function writeExport(
  session: WarehouseSession,
  manifest: Manifest,
  { isProof }: { isProof: boolean },
): Promise<void> {
  const { run, resource, mode, filters, capped, verdict, reasons, scope, warnings = [], deletes } = manifest
  await session.run(`delete from ${inSchema(session)} where ${ofRun(manifest)}`)
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
  await session.run(
    `insert into ${inSchema(session)} (${Object.keys(cells).join(', ')}) values (${Object.values(cells).join(', ')})`,
  )
}
