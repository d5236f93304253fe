import type { Before } from '../coverage.ts'
import type { Publication } from '../destination.ts'
import { findCoverage } from './coverage.ts'
import { lastExports } from './export-row.ts'
import type { WarehouseSession } from './session.ts'

export async function lookBack(
  session: WarehouseSession,
  publication: Publication,
): Promise<Before & { publishedAt: string | undefined }> {
  const exports = await lastExports(session)
  const { lost = {}, publishedAt } = exports.find(({ resource }) => resource === publication.resource) ?? {}
  return { ...(await findCoverage(session, publication)), lost, publishedAt }
}

/** The time of a publication, which comes after all others whatever the clocks of the machines. */
export const laterThan = (last: string | undefined, now: string): string =>
  last === undefined || Date.parse(last) < Date.parse(now)
    ? now
    : new Date(Date.parse(last) + 1).toISOString()
