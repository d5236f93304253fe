import { isDeepStrictEqual } from 'node:util'
import type { Publication } from '../destination.ts'
import { manifestSchema, type Manifest } from '../manifest/manifest.ts'
import { findEmptied, isMadeAgain } from './lost-rows.ts'
import type { WarehouseSession } from './session.ts'
import { literal, quote } from './sql.ts'
import { exportsTable } from './warehouse-owner.ts'

type View = Pick<Publication, 'resource' | 'filters' | 'excluded' | 'hashed'>

/**
 * Implements `Destination.coveredThrough`. Checks the exports since the last whole one, however many came
 * before.
 */
export async function findCoverage(session: WarehouseSession, view: View): Promise<number | undefined> {
  const there = await session.describe()
  if (!there.has(exportsTable)) return undefined
  const exports = `${quote(session.schema)}.${quote(exportsTable)}`
  const ofList = `resource = ${literal(view.resource)}`
  const whole = `${ofList} and mode = 'full' and verdict = 'proven' and not capped
    and cast(filters as text) = ${literal(JSON.stringify(view.filters))}`
  const rows = await session.all(`select manifest from ${exports} where ${ofList}
    and published_at >= (select max(published_at) from ${exports} where ${whole}) order by published_at, run`)
  const manifests = rows.map((row) => manifestSchema.parse(JSON.parse(row['manifest'] ?? '')))
  // A table that someone dropped or emptied took its rows along, and the next export would only bring back what changed
  // since.
  if ((await findEmptied(session, { exports: manifests, there })).length > 0) return undefined
  return toCoverage(manifests, view)
}

function toCoverage(manifests: readonly Manifest[], view: View): number | undefined {
  let covered: number | undefined
  for (const [at, manifest] of manifests.entries()) {
    if (manifests.slice(0, at).some((earlier) => isMadeAgain(earlier, manifest))) covered = undefined
    // That export left columns empty or wrote them differently.
    if (!hasSameColumns(manifest, view)) return undefined
    if (manifest.verdict !== 'proven' || manifest.capped || manifest.completeThrough === null) continue
    if (!isDeepStrictEqual(manifest.filters, { ...view.filters })) continue
    const { mode, changedSince, completeThrough } = manifest
    const joins = mode === 'full' || (covered !== undefined && Date.parse(String(changedSince)) <= covered)
    if (joins) covered = Math.max(covered ?? -Infinity, Date.parse(completeThrough))
  }
  return covered
}

const hasSameColumns = (one: Pick<View, 'excluded' | 'hashed'>, other: Pick<View, 'excluded' | 'hashed'>) =>
  isDeepStrictEqual(one.excluded.toSorted(), other.excluded.toSorted()) &&
  isDeepStrictEqual(one.hashed.toSorted(), other.hashed.toSorted())
