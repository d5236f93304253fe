import type { Publication } from '../destination.ts'
import type { Manifest } from '../manifest/manifest.ts'
import { checkOrder, checkPrivacy } from '../admission.ts'
import { findExport, lastExports } from './export-row.ts'
import type { WarehouseTable } from '../layout.ts'
import { migrate } from './migrate.ts'
import { type Found, findTables, planTable, type TablePlan } from './schema-change.ts'
import type { WarehouseEngine, WarehouseSession } from './session.ts'
import { findOwner, createHeld, heldTable, writeOwner } from './warehouse-owner.ts'

/** A publication in progress. */
export interface Way {
  engine: WarehouseEngine
  publication: Publication
  tables: readonly WarehouseTable[]
  location: string
}

/** A warehouse before a publication. */
export interface Surroundings {
  stamp: 'new' | 'ours'
  found: Found
  plans: readonly TablePlan[]
  /** What this run has published there. */
  existing: Manifest | undefined
}

/** Rejects what cannot be merged before anything is written, and finds what is already published. */
export async function lookAround(way: Way, session: WarehouseSession): Promise<Surroundings> {
  const { publication, tables, location } = way
  const columns = await session.describe()
  const stamp = await findOwner({ session, tables: columns, owner: publication, where: location })
  const found = await findTables({ session, columns, stamp })
  const plans = tables.map((table) => planTable({ session, found, table }))
  const existing = stamp === 'new' ? undefined : await findExport(session, publication)
  if (stamp === 'ours' && existing === undefined) {
    const published = await lastExports(session)
    checkPrivacy({ published, privacy: publication, where: location })
    checkOrder({ published, publication, where: location })
  }
  return { stamp, found, plans, existing }
}

/** Whether all tables are new, so that each can be filled with whatever comes. */
export const canFill = ({ fillsNewTables }: WarehouseSession, { plans }: Surroundings) =>
  fillsNewTables && plans.every(({ isNew }) => isNew)

/**
 * Excludes other publications, and looks around once more: meanwhile, another attempt of the same run may have published,
 * or a table may have changed. Then prepares the warehouse for a publication that is new there.
 */
export async function lock(way: Way, session: WarehouseSession): Promise<Surroundings> {
  await session.lock(way.tables.map(({ table }) => table.name))
  const now = await lookAround(way, session)
  if (now.existing !== undefined) return now
  if (now.stamp === 'new') await writeOwner(session, way.publication)
  else if (!now.found.columns.has(heldTable)) await createHeld(session)
  if (now.stamp === 'ours' && (await migrate(session))) return lookAround(way, session)
  return now
}
