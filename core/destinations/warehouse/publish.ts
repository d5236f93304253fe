import type { Publication, Published } from '../destination.ts'
import { PublishedOtherwiseError, refuseIncomplete } from '../errors.ts'
import { toWarehouseTable, type WarehouseTable } from '../layout.ts'
import { isSameRead, type Manifest } from '../manifest.ts'
import { toDriftWarnings, toManifest, toPublishedTable } from '../to-manifest.ts'
import { isSameParts, rowsOf } from '../parts/read-parts.ts'
import { checkOrder, checkOwner, checkPrivacy } from './admission.ts'
import {
  type Before,
  changedWarnings,
  coveredThrough,
  factsThere,
  hasKept,
  type Held,
  lackingOf,
  lookBack,
  toHeld,
  writeHeld,
} from './coverage.ts'
import { alignChildren, findDeletes, markDeletes } from './deletes.ts'
import {
  createOwnTables,
  findExport,
  keepRejected,
  lastExports,
  rejectedTable,
  writeExport,
} from './exports.ts'
import { leaveOutRepeated, mergeRecords, type Merging, type Staged } from './merge.ts'
import { checkTable, type Database, findTables, type Found, prepareTable } from './tables.ts'

/** Publishes a read in one transaction: stages its rows, excludes other publications, and merges. */
export async function publishTo(
  db: Database,
  publication: Publication,
  merging: Merging,
): Promise<Pick<Published, 'manifest' | 'fresh' | 'coveredThrough'>> {
  const { signal, onStep } = publication
  const tables = publication.tables.map(toWarehouseTable)
  const stage = async () => {
    const staged = await merging.stage(tables)
    const warnings = await leaveOutRepeated(db, { tables, ...staged }, staged.facts.repeatedIds ?? [])
    onStep?.('staged')
    signal?.throwIfAborted()
    return { ...staged, warnings }
  }
  const staged = (await admit(db, publication, tables)).existing === undefined ? await stage() : undefined
  await merging.lock()
  // Meanwhile, another attempt of the same run may have published or marked deletes, or a table may have changed.
  const { existing, found, published } = await admit(db, publication, tables)
  const before = await lookBack(db, found.columns, { resource: publication.resource, published })
  const of = { db, publication, merging, tables, found, before }
  const done =
    existing === undefined
      ? await merge({ ...of, staged: staged ?? (await stage()) })
      : await publishAgain({ ...of, existing })
  if (existing === undefined) onStep?.('counted')
  signal?.throwIfAborted()
  return {
    manifest: done.manifest,
    fresh: existing === undefined,
    coveredThrough: coveredThrough(done, publication),
  }
}

/** A publication in progress. */
interface Publishing {
  db: Database
  publication: Publication
  merging: Merging
  tables: readonly WarehouseTable[]
  found: Found
  before: Before
}

type Done = Pick<Held, 'covered'> & { manifest: Manifest }

/**
 * Rejects what can't be merged before anything is written, and finds what the run has published already, and the tables that
 * any run has.
 */
async function admit(
  db: Database,
  publication: Publication,
  tables: readonly WarehouseTable[],
): Promise<{ found: Found; existing: Manifest | undefined; published: readonly string[] }> {
  const found = await findTables(db)
  await checkOwner(db, found.columns, publication)
  const existing = await findExport(db, found.columns, publication)
  const last = await lastExports(db, found.columns)
  const isPublished = last.some(({ resource }) => resource === publication.resource)
  const published = isPublished ? publication.tables.map(({ name }) => name) : []
  if (existing !== undefined) return { found, existing, published }
  checkPrivacy(db, last, publication)
  checkOrder(db, last, publication)
  for (const table of tables) checkTable(db, found, table)
  return { found, existing, published }
}

async function merge(of: Publishing & { staged: Staged & { warnings: readonly string[] } }): Promise<Done> {
  const { db, publication, merging, tables, found, before, staged } = of
  await createOwnTables(db, found.columns, publication)
  for (const table of tables) await prepareTable(db, found, table)
  const { kept, changes } = await mergeRecords(db, merging, { publication, tables, rows: staged.rows, found })
  const published = publication.tables.map((table) => {
    const left = kept.get(table.name) ?? 0
    const rows = staged.rows.get(table.name)!
    return toPublishedTable(publication, table, { rows, files: [], ...(left > 0 && { kept: left }) })
  })
  const judged = await findDeletes(db, publication)
  if (judged.marks) await markDeletes(db, publication)
  // Somebody who changed a table may have marked a record or its child rows, or removed one of both.
  if (hasKept(published) || lackingOf(before).length > 0) await alignChildren(db, publication)
  const rejected = await keepRejected(db, publication)
  const { missing } = publication
  const warnings = [
    ...staged.warnings,
    ...changedWarnings(publication, published, before),
    ...judged.warnings,
  ]
  const manifest = toManifest({
    publication,
    destination: db.name,
    facts: factsThere(publication, staged.facts, before),
    arrived: {
      tables: published,
      rejected: { rows: rejected, files: [] },
      changes,
      ...(missing && { missing: { rows: rowsOf(missing.parts), first: [...missing.first], files: [] } }),
      ...(judged.deletes && { deletes: judged.deletes }),
      ...(warnings.length > 0 && { warnings }),
    },
  })
  await writeExport(db, manifest, judged)
  const held = toHeld(publication, manifest, before)
  await writeHeld(db, publication, held)
  return { manifest, covered: held.covered }
}

/**
 * A run that is published already changes nothing, except for deletes that were held back and are allowed now. Under the lock:
 * another publication that is becoming visible must not look like a loss.
 */
async function publishAgain(of: Publishing & { existing: Manifest }): Promise<Done> {
  const { db, publication, found, before, existing } = of
  const { where } = db
  const { covered } = before
  if (!isSameRead(publication, existing) || !isSameParts(publication, existing.tables))
    throw new PublishedOtherwiseError(
      `${where} holds the export of ${publication.resource} by this run already, of another read or with other` +
        ' rows than these parts hold. What is published is never changed: start a new run.',
    )
  const hasRejected = existing.rejected.rows === 0 || found.columns.has(rejectedTable)
  const missing = [...lackingOf(before), ...(hasRejected ? [] : [rejectedTable])]
  refuseIncomplete({ missing, where })
  if (publication.maxDeletes === undefined || (existing.deletes?.heldBack ?? 0) === 0)
    return { manifest: existing, covered }
  const judged = await findDeletes(db, publication)
  const { deletes = { marked: 0, heldBack: 0, first: [] } } = judged
  if (deletes.heldBack > 0) return { manifest: existing, covered }
  const { warnings: _settled, ...others } = existing
  const warnings = toDriftWarnings(existing)
  const manifest = { ...others, deletes, ...(warnings.length > 0 && { warnings }) }
  if (judged.marks) await markDeletes(db, publication)
  await writeExport(db, manifest, judged)
  await writeHeld(db, publication, before)
  return { manifest, covered }
}
