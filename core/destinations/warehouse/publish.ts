import type { Publication, Published } from '../destination.ts'
import { PublishedOtherwiseError, refuseIncomplete } from '../errors.ts'
import { toWarehouseTable, type WarehouseTable } from '../layout.ts'
import { isSameRead, type Manifest, type ReadFacts } from '../manifest.ts'
import { toDriftWarnings, toManifest, toPublishedTable } from '../to-manifest.ts'
import { isSameParts, rowsOf } from '../parts/read-parts.ts'
import { checkOrder, checkOwner, checkPrivacy, type Owner } from './admission.ts'
import { changedWarnings, factsThere, hasKept, lackingOf, lostAfter } from './coverage.ts'
import { alignChildren, findDeletes, markDeletes } from './deletes.ts'
import {
  coverageOfExports,
  createOwnTables,
  findExport,
  findLost,
  keepRejected,
  lastExports,
  lookBack,
  ownerTable,
  writeExport,
  writeHeld,
} from './exports.ts'
import { checkTable, type Database, findTables, type Found, prepareTable } from './tables.ts'

/** The rows of a publication in tables of the session. */
export interface Staged {
  /** How many rows each table brings. */
  rows: ReadonlyMap<string, number>
  /** With the values that only this warehouse cannot hold. */
  facts: ReadFacts
  warnings: readonly string[]
}

export interface Merged {
  /** How many rows of each table were left as they are, because the warehouse has newer versions of the same records. */
  kept: ReadonlyMap<string, number>
  /** Records that were not there before, and those with a later `updated` than the stored one. */
  changes: { new: number; changed: number }
}

/** What each database does in SQL of its own. */
export interface Merging {
  /** Copies the parts into tables of the session, which hold each record once. */
  stage(tables: readonly WarehouseTable[]): Promise<Staged>
  /**
   * Waits until no other session is publishing, and excludes others until the transaction ends, and anybody else who would
   * change rows of these tables.
   */
  lock(): Promise<void>
  /**
   * Merges the staged rows into the tables, the main one first, each record as a whole with its children. A record replaces
   * the stored one unless that has a newer `updated`, as where a replica of the service lags behind.
   * @param found the tables before the publication
   */
  merge(tables: readonly WarehouseTable[], staged: Staged, found: Found): Promise<Merged>
}

/** Publishes a read in one transaction: stages its rows, excludes other publications, and merges. */
export async function publishTo(
  db: Database,
  publication: Publication,
  merging: Merging,
): Promise<Pick<Published, 'manifest' | 'fresh' | 'coveredThrough'>> {
  const { signal, onStep } = publication
  const tables = publication.tables.map(toWarehouseTable)
  const stage = async () => {
    const rows = await merging.stage(tables)
    onStep?.('staged')
    signal?.throwIfAborted()
    return rows
  }
  const before = await admit(db, publication, tables)
  const staged = before.existing === undefined ? await stage() : undefined
  await merging.lock()
  // Meanwhile, another attempt of the same run may have published or marked deletes, or a table may have changed.
  const { existing, found } = await admit(db, publication, tables)
  const manifest =
    existing === undefined
      ? await merge({ db, publication, merging, tables, found, staged: staged ?? (await stage()) })
      : await publishAgain(db, publication, { existing, found })
  if (existing === undefined) onStep?.('counted')
  signal?.throwIfAborted()
  return { manifest, fresh: existing === undefined, coveredThrough: await coverageOfExports(db, publication) }
}

/** Rejects what can't be merged before anything is written, and finds what the run has published already. */
async function admit(
  db: Database,
  publication: Publication,
  tables: readonly WarehouseTable[],
): Promise<{ found: Found; existing: Manifest | undefined }> {
  const { where, instead } = db
  const found = await findTables(db)
  await checkOwnerOf(db, found, publication)
  const existing = await findExport(db, found.columns, publication)
  if (existing !== undefined) return { found, existing }
  const published = await lastExports(db, found.columns)
  checkPrivacy({ published, privacy: publication, where, instead })
  checkOrder({ published, publication, where, instead })
  for (const table of tables) checkTable(db, found, table)
  return { found, existing }
}

/** @throws {ForeignWarehouseError} the warehouse belongs to another workspace, address or mode */
export async function checkOwnerOf(
  db: Database,
  { columns }: Pick<Found, 'columns'>,
  publication: Parameters<typeof checkOwner>[0]['publication'],
): Promise<void> {
  if (!columns.has(ownerTable)) return
  const [stamp = {}] = await db.all(`select workspace, base_url, mode from ${db.nameOf(ownerTable)}`)
  checkOwner({ stamp: stamp as unknown as Owner, publication, where: db.where })
}

async function merge(of: {
  db: Database
  publication: Publication
  merging: Merging
  tables: readonly WarehouseTable[]
  found: Found
  staged: Staged
}): Promise<Manifest> {
  const { db, publication, merging, tables, found, staged } = of
  await createOwnTables(db, found.columns, publication)
  const before = await lookBack(db, found.columns, publication)
  for (const table of tables) await prepareTable(db, found, table)
  const { kept, changes } = await merging.merge(tables, staged, found)
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
  const lost = lostAfter(publication, published, before)
  const warnings = [
    ...staged.warnings,
    ...changedWarnings(publication, published, before),
    ...judged.warnings,
  ]
  const manifest = toManifest({
    publication,
    destination: db.name,
    facts: factsThere({ ...publication, facts: staged.facts }, before),
    arrived: {
      tables: published,
      rejected: { rows: rejected, files: [] },
      changes,
      ...(missing && { missing: { rows: rowsOf(missing.parts), first: [...missing.first], files: [] } }),
      ...(judged.deletes && { deletes: judged.deletes }),
      ...(Object.keys(lost).length > 0 && { lost }),
      ...(warnings.length > 0 && { warnings }),
    },
  })
  await writeExport(db, manifest, judged)
  await writeHeld(db, publication)
  return manifest
}

/**
 * A run that is published already changes nothing, except for deletes that were held back and are allowed now. Under the lock:
 * another publication that is becoming visible must not look like a loss.
 */
async function publishAgain(
  db: Database,
  publication: Publication,
  { existing, found }: { existing: Manifest; found: Found },
): Promise<Manifest> {
  const { where } = db
  if (!isSameRead(publication, existing) || !isSameParts(publication, existing.tables))
    throw new PublishedOtherwiseError(
      `${where} holds the export of ${publication.resource} by this run already, of another read or with other` +
        ' rows than these parts hold. What is published is never changed: start a new run.',
    )
  refuseIncomplete({ missing: await findLost(db, found.columns, existing), where })
  if (publication.maxDeletes === undefined || (existing.deletes?.heldBack ?? 0) === 0) return existing
  const judged = await findDeletes(db, publication)
  const { deletes = { marked: 0, heldBack: 0, first: [] } } = judged
  if (deletes.heldBack > 0) return existing
  const { warnings: _settled, ...others } = existing
  const warnings = toDriftWarnings(existing)
  const manifest = { ...others, deletes, ...(warnings.length > 0 && { warnings }) }
  if (judged.marks) await markDeletes(db, publication)
  await writeExport(db, manifest, judged)
  await writeHeld(db, publication)
  return manifest
}

/** Of several records with one id, a warehouse keeps one. */
export function repeatedWarning({ facts, tables }: Publication): string {
  const ids = facts.repeatedIds ?? []
  const children = tables.slice(1).map(({ name }) => name)
  const without = children.length === 0 ? '' : `, without rows in ${children.join(' and ')}`
  const more = ids.length > 5 ? ` and ${ids.length - 5} more` : ''
  return `Of the records with one id, the one that was changed last is here${without}: ${ids.slice(0, 5).join(', ')}${more}.`
}
