import type { Publication, Published, Warehouse } from '../destination.ts'
import { checkRows, checkTables, rowsOf } from '../parts/check-parts.ts'
import { PublishedOtherwiseError, refuseIncomplete, RowsMissingError } from '../errors.ts'
import { isSameRead, type Manifest } from '../manifest/manifest.ts'
import { isSameParts, sumOf } from '../parts/read-parts.ts'
import { toDriftWarnings } from '../manifest/drift-warnings.ts'
import { toManifest } from '../manifest/to-manifest.ts'
import type { JudgedDeletes } from '../absence.ts'
import { changedWarnings, factsThere, hasKept, lackingOf, lostAfter, type Before } from '../coverage.ts'
import { findDeletes, markChildren, markDeletes } from './deletes.ts'
import { findCoverage } from './coverage.ts'
import { checkPrivacy } from '../admission.ts'
import { lastExports, writeExport } from './export-row.ts'
import { exportsTable } from './warehouse-owner.ts'
import { findLost, writeHeld } from './held-rows.ts'
import { toWarehouseTable } from '../layout.ts'
import { changeTable, dropRefusingIndexes } from './live-views.ts'
import { canFill, lock, lookAround, type Way } from './look-around.ts'
import { laterThan, lookBack } from './look-back.ts'
import { mergeRecords, type Merged } from './merge.ts'
import { keepRejected } from './rejected.ts'
import { hasRepeated, leaveOutRepeated } from './repeated.ts'
import { type Found, findTables, planTable, type TablePlan } from './schema-change.ts'
import { compareWithExport } from './verify-warehouse.ts'
import type { Staged, WarehouseEngine, WarehouseSession } from './session.ts'

export const createWarehouse = (engine: WarehouseEngine): Warehouse => ({
  checkPrivacy: (scope, of) =>
    engine.transaction({ ...scope, readOnly: true }, async (session) => {
      if (!(await session.describe()).has(exportsTable)) return
      const published = await lastExports(session)
      for (const privacy of of) checkPrivacy({ published, privacy, where: engine.locate(scope) })
    }),
  name: engine.name,
  compare: (options) => compareWithExport(engine, options),
  publish: (publication) => publish(engine, publication),
  placeOf: (scope) => Promise.resolve(engine.placeOf(scope)),
  coveredThrough: (scope, of) =>
    engine.transaction(
      { ...scope, readOnly: true },
      async (session) => (await findCoverage(session, of)).through,
    ),
})

async function publish(engine: WarehouseEngine, publication: Publication): Promise<Published> {
  publication.signal?.throwIfAborted()
  checkTables(publication)
  const location = engine.locate(publication)
  const tables = publication.tables.map(toWarehouseTable)
  const way: Way = { engine, publication, tables, location }
  const published = await engine.transaction(publication, async (session) => {
    const before = await lookAround(way, session)
    // New tables are filled where they stay, so no other publication may make them meanwhile.
    const isLocked = before.existing === undefined && canFill(session, before)
    const known = isLocked ? await lock(way, session) : before
    if (known.existing !== undefined) return publishAgain(way, session, known.existing)
    const staged = await stageTables(way, session, {
      plans: known.plans,
      // A key of a table that is filled refuses what would be left out.
      fills: isLocked && canFill(session, known) && !hasRepeated(publication),
    })
    publication.onStep?.('staged')
    publication.signal?.throwIfAborted()
    const now = isLocked ? known : await lock(way, session)
    return now.existing === undefined
      ? { manifest: await merge(way, session, { staged, found: now.found }), fresh: true }
      : publishAgain(way, session, now.existing)
  })
  publication.onStep?.('visible')
  return { ...published, location }
}

async function publishAgain(way: Way, session: WarehouseSession, existing: Manifest) {
  const { publication, tables, location } = way
  if (!isSameRead(publication, existing) || !isSameParts(publication, existing.tables))
    throw new PublishedOtherwiseError(
      `${location} holds the export of ${publication.resource} by this run already, of another read or with other` +
        ' rows than these parts hold. What is published is never changed: start a new run.',
    )
  // Another publication that is becoming visible must not look like a loss.
  await session.lock(tables.map(({ table }) => table.name))
  refuseIncomplete({ missing: await findLost(session, { existing }), where: location })
  const manifest = await releaseDeletes(way, session, existing)
  return { manifest, fresh: false }
}

/** Marks the deletes that were held back when the run was published, if they are allowed now. */
async function releaseDeletes(way: Way, session: WarehouseSession, existing: Manifest): Promise<Manifest> {
  const { publication, tables } = way
  const isAsked = publication.maxDeletes !== undefined && (existing.deletes?.heldBack ?? 0) > 0
  if (!isAsked) return existing
  const known = await findTables({ session, columns: await session.describe(), stamp: 'ours' })
  const plans = tables.map((table) => planTable({ session, found: known, table }))
  const found = await findDeletes({ session, publication, plans })
  const { deletes = { marked: 0, heldBack: 0, first: [] }, marks } = found
  const { warnings: _settled, ...rest } = existing
  const warnings = [...toDriftWarnings(existing), ...found.warnings]
  const manifest = { ...rest, deletes, ...(warnings.length > 0 && { warnings }) }
  if (deletes.heldBack > 0) return existing
  await writeExport(session, manifest, found)
  if (marks) {
    await markDeletes({ session, publication, plans })
    await markChildren({ session, publication, plans })
  }
  await writeHeld(session, publication)
  return manifest
}

async function stageTables(
  way: Way,
  session: WarehouseSession,
  { plans, fills }: { plans: readonly TablePlan[]; fills: boolean },
) {
  const { publication, location } = way
  const { run, facts } = publication
  const staged = new Map<string, Staged>()
  for (const { table, types } of plans) {
    const { name } = table.table
    const parts = publication.parts.filter((part) => part.table === name)
    const arrived = await session.stage({
      table,
      parts,
      types,
      ...(fills && { fill: { run, readAt: facts.startedAt } }),
    })
    checkRows(parts, { table: name, rows: arrived.rows, where: location })
    staged.set(name, arrived)
  }
  return staged
}

async function merge(
  way: Way,
  session: WarehouseSession,
  has: { staged: ReadonlyMap<string, Staged>; found: Found },
): Promise<Manifest> {
  const { publication } = way
  const { found: tables } = has
  const before = await lookBack(session, publication)
  const isChanged = lackingOf(before).length > 0
  const plans = way.tables.map((table) =>
    planTable({ session, found: tables, table, needed: has.staged.get(table.table.name)!.types }),
  )
  const { staged, warnings } = hasRepeated(publication)
    ? await leaveOutRepeated({ session, publication, plans, staged: has.staged })
    : { staged: has.staged, warnings: [] }
  const change = async (some: readonly TablePlan[]) => {
    const indexes: string[] = []
    for (const plan of some) indexes.push(...(await changeTable({ session, found: tables, plan })))
    return indexes
  }
  const old = plans.filter(({ isNew }) => !isNew)
  const indexes = await change(old)
  if (session.typeSystem.hasKeys) for (const { table } of old) await dropRefusingIndexes(session, table.table)
  const merged = await mergeRecords({ session, publication, plans, staged, isDoubted: true })
  checkMerged(way, staged, merged)
  indexes.push(...(await change(plans.filter(({ isNew }) => isNew))))
  for (const statement of indexes) await session.run(statement)
  const found = await findDeletes({ session, publication, plans })
  const rejected = await keepRejected({ session, publication, where: way.location })
  const manifest = toWarehouseManifest(way, { staged, merged, found, rejected, before, warnings })
  await writeExport(session, manifest, found)
  if (found.marks) await markDeletes({ session, publication, plans })
  if (found.marks || isChanged || hasKept([...merged.values()]))
    await markChildren({ session, publication, plans })
  await writeHeld(session, publication)
  publication.onStep?.('counted')
  publication.signal?.throwIfAborted()
  return manifest
}

function checkMerged(
  way: Way,
  staged: ReadonlyMap<string, Staged>,
  merged: ReadonlyMap<string, Merged>,
): void {
  for (const [table, { rows: read }] of staged) {
    const { written, kept } = merged.get(table)!
    if (written + kept !== read)
      throw new RowsMissingError({ table, read, arrived: written + kept, where: way.location })
  }
}

function toWarehouseManifest(
  way: Way,
  done: {
    staged: ReadonlyMap<string, Staged>
    merged: ReadonlyMap<string, Merged>
    found: JudgedDeletes
    rejected: number
    before: Before & { publishedAt: string | undefined }
    warnings: readonly string[]
  },
): Manifest {
  const { engine } = way
  const { staged, merged, rejected, before } = done
  const { deletes } = done.found
  const publication = { ...way.publication, facts: factsThere(way.publication, before) }
  const { missing } = publication
  const changes = merged.get(publication.tables[0]?.name ?? '')?.counted
  const tables = publication.tables.map((table) => {
    const { name } = table
    const { kept } = merged.get(name)!
    return {
      ...table,
      key: [...table.key],
      columns: [...table.columns],
      rows: staged.get(name)!.rows,
      files: [],
      parts: sumOf(publication.parts, name),
      ...(kept > 0 ? { kept } : {}),
    }
  })
  const lost = lostAfter(publication, tables, before)
  const warnings = [...done.warnings, ...changedWarnings(publication, tables, before), ...done.found.warnings]
  const manifest = toManifest({
    publication,
    destination: engine.name,
    arrived: {
      tables,
      rejected: { rows: rejected, files: [] },
      ...(missing && { missing: { rows: rowsOf(missing.parts), first: [...missing.first], files: [] } }),
      ...(changes && { changes }),
      ...(deletes === undefined ? {} : { deletes }),
      ...(Object.keys(lost).length > 0 && { lost }),
      ...(warnings.length > 0 ? { warnings } : {}),
    },
  })
  return { ...manifest, publishedAt: laterThan(before.publishedAt, manifest.publishedAt) }
}
