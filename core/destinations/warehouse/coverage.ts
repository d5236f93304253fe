import type { Publication } from '../destination.ts'
import { toCoverage } from '../coverage.ts'
import { toManifests } from './export-row.ts'
import { findChanged } from './held-rows.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from '../sql.ts'
import { exportsTable } from './warehouse-owner.ts'

type View = Pick<Publication, 'resource' | 'filters'>

export interface Coverage {
  /** See `Destination.coveredThrough`. */
  through: number | undefined
  /** The tables that are not as the last publication left them. */
  changed: string[]
}

/**
 * Finds how far the exports of a list go, and whether what they left is still there. Checks the exports since the last whole
 * one, however many came before.
 */
export async function findCoverage(session: WarehouseSession, view: View): Promise<Coverage> {
  const there = await session.describe()
  if (!there.has(exportsTable)) return { through: undefined, changed: [] }
  const exports = `${quote(session.schema)}.${quote(exportsTable)}`
  const ofList = `resource = ${literal(view.resource)}`
  const whole = `${ofList} and mode = 'full' and verdict = 'proven' and not capped
    and cast(filters as text) = ${literal(JSON.stringify(view.filters))}`
  // An older read may be published after a newer one, and covers less.
  const rows = await session.all(`select manifest from ${exports} where ${ofList} and published_at >= (
    select published_at from ${exports} where ${whole} order by complete_through desc nulls last, published_at limit 1)
    order by published_at, run`)
  const manifests = toManifests(rows)
  const tables = manifests.flatMap((manifest) => manifest.tables.map(({ name }) => name))
  const changed = await findChanged(session, { resource: view.resource, tables, there })
  return { through: changed.length > 0 ? undefined : toCoverage(manifests, view), changed }
}
