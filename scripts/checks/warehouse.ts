import { literal } from '../../core/destinations/warehouse/sql.ts'
import { checkOwner } from '../../core/destinations/warehouse/warehouse-owner.ts'
import type { Settings } from '../../worker/settings/settings.ts'
import { fine, runCheck, wrong, type Finding } from './finding.ts'

/** Checks that the PostgreSQL warehouse is writable and belongs to this workspace and mode. */
export async function checkWarehouse({ billing, warehouseUrl }: Settings): Promise<Finding[]> {
  if (warehouseUrl === undefined) return []
  const [seen] = await runCheck('warehouse', async () => {
    // Loaded late: most data folders have no warehouse.
    const { createPostgresDestination } = await import('../../core/destinations/postgres/postgres.ts')
    const { engine } = createPostgresDestination({ url: warehouseUrl })
    const { workspace, baseUrl, testMode } = billing
    const where = engine.locate({ testMode })
    return engine.transaction({ testMode }, async (session) => {
      const owner = { workspace, baseUrl, testMode }
      await checkOwner({ session, tables: await session.describe(), owner, where })
      const schema = literal(session.schema)
      const [rights] = await session.all(
        `select coalesce((select has_schema_privilege(oid, 'create, usage') from pg_namespace where nspname = ${schema}),
          has_database_privilege(current_database(), 'create'))::text as allowed, current_user::text as name`,
      )
      if (rights?.['allowed'] === 'true') return [fine('warehouse', `The warehouse in ${where} is writable.`)]
      const refused = `The user ${rights?.['name']} may not create tables in ${where}.`
      return [
        wrong(
          'warehouse',
          `${refused} Grant create on the database, or on that schema, or correct WAREHOUSE_URL.`,
        ),
      ]
    })
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
