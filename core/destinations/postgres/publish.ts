import type { JudgedDeletes } from '../absence.ts'
import { checkOrder, checkOwner, checkPrivacy, toOwner, type Owner } from '../admission.ts'
import { changedWarnings, factsThere, hasKept, lackingOf, lostAfter, type Before } from '../coverage.ts'
import type { Publication, Published } from '../destination.ts'
import { PublishedOtherwiseError, refuseIncomplete } from '../errors.ts'
import { toWarehouseTable, type WarehouseTable } from '../layout.ts'
import { toDriftWarnings } from '../manifest/drift-warnings.ts'
import { isSameRead, type Manifest } from '../manifest/manifest.ts'
import { toManifest, toPublishedTable } from '../manifest/to-manifest.ts'
import { checkRows, checkTables, isSameParts, readLines, rowsOf } from '../parts/read-parts.ts'
import { literal, quote } from '../sql.ts'
import { findDeletes, markChildren, markDeletes } from './deletes.ts'
import {
  coverageOfExports,
  createOwnTables,
  findCoverage,
  findExport,
  findLost,
  lastExports,
  ownerTable,
  rejectedTable,
  writeExport,
  writeHeld,
} from './exports-table.ts'
import { leaveOutRepeated, mergeRecords, type Merged } from './merge.ts'
import type { Session } from './session.ts'
import { stageTables } from './stage.ts'
import {
  checkTable,
  createIndexes,
  dropRefusingIndexes,
  findTables,
  prepareTable,
  type Found,
} from './tables.ts'

/** Publishes a read in one transaction: stages its rows, excludes other publications, and merges. */
export async function publish(
  session: Session,
  publication: Publication,
): Promise<Pick<Published, 'manifest' | 'fresh' | 'coveredThrough'>> {
  const { manifest, fresh } = await publishOnce(session, publication)
  return { manifest, fresh, coveredThrough: await coverageOfExports(session, publication) }
}

async function publishOnce(
  session: Session,
  publication: Publication,
): Promise<Pick<Published, 'manifest' | 'fresh'>> {
  checkTables(publication)
  const tables = publication.tables.map(toWarehouseTable)
  const before = await admit(session, publication, tables)
  const stage = async () => {
    const rows = await stageTables(session, publication)
    publication.onStep?.('staged')
    publication.signal?.throwIfAborted()
    return rows
  }
  const staged = before.existing === undefined ? await stage() : undefined
  await lock(session, publication)
  // Meanwhile, another attempt of the same run may have published or marked deletes, or a table may have changed.
  const { existing, found } = await admit(session, publication, tables)
  if (existing !== undefined) return publishAgain(session, publication, { existing, found })
  const manifest = await merge(session, { publication, tables, staged: staged ?? (await stage()), found })
  publication.onStep?.('counted')
  publication.signal?.throwIfAborted()
  return { manifest, fresh: true }
}

/** Rejects what can't be merged before anything is written, and finds what the run has published already. */
async function admit(
  session: Session,
  publication: Publication,
  tables: readonly WarehouseTable[],
): Promise<{ found: Found; existing: Manifest | undefined }> {
  const { where } = session
  const found = await findTables(session)
  if (found.columns.has(ownerTable)) {
    const [stamp] = await session.all(`select workspace, base_url, mode from ${session.nameOf(ownerTable)}`)
    checkOwner({ stamp: (stamp ?? {}) as unknown as Owner, publication, where })
  }
  const existing = await findExport(session, found, publication)
  if (existing !== undefined) return { found, existing }
  const published = await lastExports(session, found)
  checkPrivacy({ published, privacy: publication, where })
  checkOrder({ published, publication, where })
  for (const table of tables) checkTable(session, found, table)
  return { found, existing }
}

/**
 * Waits until no other session is publishing, and excludes others until the transaction ends, and anybody else who would
 * change rows of these tables: what a table holds then is what the publication has left.
 */
async function lock(session: Session, { tables }: Pick<Publication, 'tables'>): Promise<void> {
  const { schema } = session
  await session.run('select pg_advisory_xact_lock(hashtextextended($1, 0))', [`billing-connector ${schema}`])
  // `if not exists` requires the right to create the schema even if it exists.
  const [found] = await session.all('select 1 as one from pg_namespace where nspname = $1', [schema])
  if (found === undefined) await session.run(`create schema ${quote(schema)}`)
  const there = await session.all(
    `select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = $1 and c.relkind in ('r', 'p') and c.relname = any ($2)`,
    [schema, tables.map(({ name }) => name)],
  )
  const names = there.map(({ name }) => session.nameOf(name ?? ''))
  if (names.length > 0) await session.run(`lock table ${names.join(', ')} in share row exclusive mode`)
}

async function merge(
  session: Session,
  options: {
    publication: Publication
    tables: readonly WarehouseTable[]
    staged: ReadonlyMap<string, number>
    found: Found
  },
): Promise<Manifest> {
  const { publication, tables, found } = options
  await createOwnTables(session, found)
  if (!found.columns.has(ownerTable)) {
    const stamp = Object.values(toOwner(publication)).map(literal)
    await session.run(
      `insert into ${session.nameOf(ownerTable)} values (${stamp.join(', ')}, current_timestamp)`,
    )
  }
  const before = await findCoverage(session, found, publication)
  const { staged, warnings } = await leaveOutRepeated({ ...options, session })
  for (const table of tables) {
    await dropRefusingIndexes(session, table.table)
    await prepareTable(session, found, table)
  }
  const merged = await mergeRecords({ session, publication, found, tables, staged })
  const rejected = await keepRejected(session, publication)
  const judged = await findDeletes(session, publication)
  const manifest = describe({ publication, staged, merged, rejected, before, judged, warnings })
  if (judged.marks) await markDeletes(session, publication)
  // Somebody who changed a table may have marked a record or its child rows, or removed one of both.
  if (judged.marks || hasKept(manifest.tables) || lackingOf(before).length > 0)
    await markChildren(session, publication)
  for (const { table } of tables) await createIndexes(session, table)
  await writeExport(session, manifest, judged)
  await writeHeld(session, await findTables(session), publication)
  return manifest
}

/** Lines per statement. */
const batch = 1_000

/**
 * Stores rejected items beside the records and returns their number.
 * @throws {RowsMissingError}
 */
async function keepRejected(session: Session, publication: Publication): Promise<number> {
  const { rejected = [], run, resource, signal } = publication
  let rows = 0
  let lines: string[] = []
  const flush = () =>
    session.run(`insert into ${session.nameOf(rejectedTable)} select $1, $2, unnest($3::text[])`, [
      run,
      resource,
      lines,
    ])
  for await (const line of readLines(rejected, { signal })) {
    rows++
    lines.push(line)
    if (lines.length < batch) continue
    await flush()
    lines = []
  }
  if (lines.length > 0) await flush()
  checkRows(rejected, { table: 'rejected', rows, where: session.where })
  return rows
}

function describe(options: {
  publication: Publication
  staged: ReadonlyMap<string, number>
  merged: Merged
  rejected: number
  before: Before
  judged: JudgedDeletes
  warnings: readonly string[]
}): Manifest {
  const { publication, staged, merged, rejected, before, judged, warnings } = options
  const tables = publication.tables.map((table) => {
    const kept = merged.kept.get(table.name)!
    const rows = staged.get(table.name)!
    return toPublishedTable(publication, table, { rows, files: [], ...(kept > 0 && { kept }) })
  })
  const { missing } = publication
  const lost = lostAfter(publication, tables, before)
  const all = [...warnings, ...changedWarnings(publication, tables, before), ...judged.warnings]
  return toManifest({
    publication: { ...publication, facts: factsThere(publication, before) },
    destination: 'postgres',
    arrived: {
      tables,
      rejected: { rows: rejected, files: [] },
      changes: merged.changes,
      ...(missing && { missing: { rows: rowsOf(missing.parts), first: [...missing.first], files: [] } }),
      ...(judged.deletes && { deletes: judged.deletes }),
      ...(Object.keys(lost).length > 0 && { lost }),
      ...(all.length > 0 && { warnings: all }),
    },
  })
}

/**
 * A run that is published already changes nothing, except for deletes that were held back and are allowed now. Under the lock:
 * another publication that is becoming visible must not look like a loss.
 */
async function publishAgain(
  session: Session,
  publication: Publication,
  { existing, found }: { existing: Manifest; found: Found },
): Promise<Pick<Published, 'manifest' | 'fresh'>> {
  const { where } = session
  if (!isSameRead(publication, existing) || !isSameParts(publication, existing.tables))
    throw new PublishedOtherwiseError(
      `${where} holds the export of ${publication.resource} by this run already, of another read or with other` +
        ' rows than these parts hold. What is published is never changed: start a new run.',
    )
  refuseIncomplete({ missing: await findLost(session, found, existing), where })
  if (publication.maxDeletes === undefined || (existing.deletes?.heldBack ?? 0) === 0)
    return { manifest: existing, fresh: false }
  const judged = await findDeletes(session, publication)
  const { deletes = { marked: 0, heldBack: 0, first: [] } } = judged
  if (deletes.heldBack > 0) return { manifest: existing, fresh: false }
  const { warnings: _settled, ...others } = existing
  const warnings = toDriftWarnings(existing)
  const manifest = { ...others, deletes, ...(warnings.length > 0 && { warnings }) }
  if (judged.marks) {
    await markDeletes(session, publication)
    await markChildren(session, publication)
  }
  await writeExport(session, manifest, judged)
  await writeHeld(session, found, publication)
  return { manifest, fresh: false }
}
