import type { Publication, Published } from '../destination.ts'
import { formatCountOf } from '../../runs/view/format.ts'
import { AlreadyPublishedError, refuseIncomplete } from '../errors.ts'
import { idOf, instant, stagedIdOf, stagedName, toWarehouseTable, type WarehouseTable } from '../layout.ts'
import { isSameRead, type Manifest } from '../manifest.ts'
import { toManifest, toPublishedTable } from '../to-manifest.ts'
import { isSameParts, rowsOf } from '../parts.ts'
import { checkOrder, checkOwner, checkPrivacy } from './admission.ts'
import { describeCertificate } from './certificate.ts'
import {
  type Before,
  changedWarnings,
  factsThere,
  hasKept,
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
import {
  changeAll,
  checkTable,
  type Database,
  findTables,
  type Found,
  prepareTable,
  type Staged,
} from './tables.ts'

/** Publishes a read in one transaction: stages its rows, excludes other publications, and merges. */
export async function publishTo(
  db: Database,
  publication: Publication,
): Promise<Pick<Published, 'manifest' | 'fresh'>> {
  const { signal, onStep } = publication
  const tables = publication.tables.map(toWarehouseTable)
  const stage = async () => {
    const staged = await db.stage(publication, tables)
    const warnings = await leaveOutRepeated(db, { tables, ...staged }, staged.facts.repeatedIds ?? [])
    onStep?.('staged')
    signal?.throwIfAborted()
    return { ...staged, warnings }
  }
  const admitted = await admit(db, publication, tables)
  const staged = admitted.existing === undefined ? await stage() : undefined
  await db.lock(publication)
  // Meanwhile, another attempt of the same run may have published or marked deletes, or a table may have changed.
  const { existing, found, published } = db.isShared ? await admit(db, publication, tables) : admitted
  const before = await lookBack(db, found, { resource: publication.resource, published })
  const of = { db, publication, tables, found, before }
  const manifest =
    existing === undefined
      ? await merge({ ...of, staged: staged ?? (await stage()) })
      : await publishAgain({ ...of, existing })
  if (existing === undefined) onStep?.('counted')
  signal?.throwIfAborted()
  return { manifest, fresh: existing === undefined }
}

/** A publication in progress. */
interface Publishing {
  db: Database
  publication: Publication
  tables: readonly WarehouseTable[]
  found: Found
  before: Before
}

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

async function merge(
  of: Publishing & { staged: Staged & { warnings: readonly string[] } },
): Promise<Manifest> {
  const { db, publication, tables, found, before, staged } = of
  await createOwnTables(db, found.columns, publication)
  for (const table of tables) await prepareTable(db, found, table)
  const { kept, changes } = await mergeRecords(db, { publication, tables, rows: staged.rows, found })
  const published = publication.tables.map((table) => {
    const left = kept.get(table.name) ?? 0
    const rows = staged.rows.get(table.name)!
    return toPublishedTable(publication, table, { rows, files: [], ...(left > 0 && { kept: left }) })
  })
  const stale = published[0]?.kept
  const judged = await findDeletes(db, publication)
  await markDeletes(db, publication, judged)
  // Somebody who changed a table may have marked a record or its child rows, or removed one of both.
  if (hasKept(published) || lackingOf(before).length > 0) await alignChildren(db, publication)
  const rejected = await keepRejected(db, publication)
  const { missing } = publication
  const facts = factsThere(publication, staged.facts, before)
  const warnings = [
    ...staged.warnings,
    ...changedWarnings(publication, published, before),
    ...(stale === undefined
      ? []
      : [
          `Kept as before, because the service has an older \`updated\`: ${formatCountOf(stale, publication.resource)}.` +
            ' If it was restored from a backup, export to a new schema or file.',
        ]),
    ...judged.warnings,
  ]
  const manifest = toManifest({
    publication,
    destination: db.name,
    facts,
    arrived: {
      tables: published,
      rejected: { rows: rejected, files: [] },
      ...(await describeCertificate(db, { ...publication, facts })),
      changes,
      ...(missing && { missing: { rows: rowsOf(missing.parts), first: [...missing.first], files: [] } }),
      ...(judged.deletes && { deletes: judged.deletes }),
      ...(warnings.length > 0 && { warnings }),
    },
  })
  await writeExport(db, manifest, judged)
  await writeHeld(db, publication, toHeld(publication, manifest, before))
  return manifest
}

interface Merged {
  /** How many rows of each table were left as they are, because the warehouse has newer versions of the same records. */
  kept: ReadonlyMap<string, number>
  /** Records that were not there before, and those with a later `updated` than the stored one. */
  changes: { new: number; changed: number }
}

/**
 * Merges the staged rows into the tables. No stored record was read later: see `checkOrder`. A record replaces the stored one
 * unless that has a newer `updated`, as where a replica of the service lags behind: then it only notes that it was seen.
 */
async function mergeRecords(
  db: Database,
  of: { publication: Publication; tables: readonly WarehouseTable[]; rows: Staged['rows']; found: Found },
): Promise<Merged> {
  const { publication, tables, rows, found } = of
  const [main] = tables as [WarehouseTable, ...WarehouseTable[]]
  const kept = new Map<string, number>()
  const changes = { new: rows.get(main.table.name)!, changed: 0 }
  if (found.columns.has(main.table.name)) {
    const target = db.nameOf(main.table.name)
    const id = stagedIdOf(db, main)
    const updated = main.columns.find(({ name }) => name === 'updated')
    const isUpdated = (sign: string) =>
      updated?.kind === 'timestamp' ? `${db.valueOf(updated)} ${sign} t.updated` : 'false'
    const joined = `from ${stagedName(main.table.name)} s left join ${target} t on t.${idOf(main)} = ${id}`
    const [counted = {}] = await db.all(`select count(*) filter (where t.${idOf(main)} is null) as new,
      count(*) filter (where ${isUpdated('>')}) as changed, count(*) filter (where ${isUpdated('<')}) as stale ${joined}`)
    changes.new = Number(counted['new'])
    changes.changed = Number(counted['changed'])
    if (counted['stale'] !== '0') {
      await db.run(`create temporary table _stale as
        select s.${idOf(main)} as cell, ${id} as id ${joined} where ${isUpdated('<')}`)
      for (const table of tables) {
        const staged = stagedName(table.table.name)
        const left = await db.run(`delete from ${staged} where ${idOf(table)} in (select cell from _stale)`)
        kept.set(table.table.name, left)
      }
      await changeAll(db, main.table, {
        how: `update ${target} as t set _read_at = ${instant(publication.facts.startedAt)}, _deleted_at = null`,
        where: `t.${idOf(main)} in (select id from _stale)`,
      })
      await db.run('drop table _stale')
    }
  }
  await db.replace(publication, tables, found)
  return { kept, changes }
}

/**
 * Leaves out what no key allows: of several staged records with one id, the one that was changed last stays, without rows in
 * child tables, because nothing tells whose they are. Tells people so.
 * @param rows how many rows each table brings, which this lowers
 */
async function leaveOutRepeated(
  db: Database,
  { tables, rows }: { tables: readonly WarehouseTable[]; rows: Map<string, number> },
  ids: readonly string[],
): Promise<string[]> {
  if (ids.length === 0) return []
  const [main, ...children] = tables as [WarehouseTable, ...WarehouseTable[]]
  const staged = stagedName(main.table.name)
  const order = ['updated', 'created']
    .filter((name) => main.columns.some((column) => column.name === name && column.kind === 'timestamp'))
    .map((name) => `, ${name}::timestamptz desc nulls last`)
  await db.run(`create temporary table _repeated as select distinct on (${idOf(main)}) * from ${staged}
    where ${idOf(main)} in (select ${idOf(main)} from ${staged} group by 1 having count(*) > 1)
    order by ${idOf(main)}${order.join('')}`)
  for (const table of tables) {
    const { name } = table.table
    const left = await db.run(
      `delete from ${stagedName(name)} where ${idOf(table)} in (select ${idOf(main)} from _repeated)`,
    )
    rows.set(name, rows.get(name)! - left)
  }
  const kept = await db.run(`insert into ${staged} select * from _repeated`)
  await db.run('drop table _repeated')
  rows.set(main.table.name, rows.get(main.table.name)! + kept)
  const names = children.map(({ table }) => table.name)
  const without = names.length === 0 ? '' : `, without rows in ${names.join(' and ')}`
  const more = ids.length > 5 ? ` and ${ids.length - 5} more` : ''
  return [
    `Of the records with one id, the one that was changed last is here${without}: ${ids.slice(0, 5).join(', ')}${more}.`,
  ]
}

/**
 * A run that is published already changes nothing, except for deletes that were held back and are allowed now. Under the lock:
 * another publication that is becoming visible must not look like a loss.
 */
async function publishAgain(of: Publishing & { existing: Manifest }): Promise<Manifest> {
  const { db, publication, found, before, existing } = of
  const { where } = db
  if (!isSameRead(publication, existing) || !isSameParts(publication, existing.tables))
    throw new AlreadyPublishedError(
      `${where} holds the export of ${publication.resource} by this run already, of another read or with other` +
        ' rows than these parts hold. What is published is never changed: start a new run.',
    )
  const hasRejected = existing.rejected.rows === 0 || found.columns.has(rejectedTable)
  const missing = [...lackingOf(before), ...(hasRejected ? [] : [rejectedTable])]
  refuseIncomplete({ missing, where })
  if (publication.maxDeletes === undefined || (existing.deletes?.heldBack ?? 0) === 0) return existing
  const judged = await findDeletes(db, publication)
  const { deletes = { marked: 0, heldBack: 0, first: [] } } = judged
  if (deletes.heldBack > 0) return existing
  const { warnings: said = [], ...others } = existing
  // The last one is about what was held back.
  const warnings = said.slice(0, -1)
  const manifest = { ...others, deletes, ...(warnings.length > 0 && { warnings }) }
  await markDeletes(db, publication, judged)
  await writeExport(db, manifest, judged)
  await writeHeld(db, publication, before)
  return manifest
}
