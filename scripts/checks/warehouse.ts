import type { Settings } from '../../worker/settings/settings.ts'
import { fine, runCheck, wrong, type Finding } from './finding.ts'

/** Checks that the PostgreSQL warehouse is writable and belongs to this workspace and mode. */
export async function checkWarehouse({ billing, warehouseUrl }: Settings): Promise<Finding[]> {
  if (warehouseUrl === undefined) return []
  const [seen] = await runCheck('warehouse', async () => {
    // Loaded late: most data folders have no warehouse.
    const { createPostgresDestination } = await import('../../core/destinations/postgres/postgres.ts')
    const warehouse = createPostgresDestination({ url: warehouseUrl })
    const problem = await warehouse.findRefusal(billing)
    return [
      problem === undefined
        ? fine('warehouse', `The warehouse in ${warehouse.locate(billing)} is writable.`)
        : wrong('warehouse', problem),
    ]
  })
  if (seen === undefined) return []
  // Adapts the message: a destination's messages are about an export, and there is none here.
  const message = seen.message
    .replace(
      / Nothing of this export was published; (?:when .*|publish .*)/,
      ' Start it, or correct WAREHOUSE_URL.',
    )
    .replace(/Nothing of this export was published; c/, 'C')
  return [{ ...seen, message }]
}
