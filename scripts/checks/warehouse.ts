import { literal } from '../../core/destinations/sql.ts'
import type { WarehouseSession } from '../../core/destinations/warehouse/session.ts'
import { findOwner, ownerTable } from '../../core/destinations/warehouse/warehouse-owner.ts'
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
      await findOwner({ session, tables: await session.describe(), owner, where })
      const problem = await findRefusal(session, where)
      return [
        problem === undefined
          ? fine('warehouse', `The warehouse in ${where} is writable.`)
          : wrong('warehouse', problem),
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

/** Why an export could not be written there, in a sentence. */
async function findRefusal(session: WarehouseSession, where: string): Promise<string | undefined> {
  const schema = literal(session.schema)
  // Several rights in one text would mean any of them.
  const [found = {}] = await session.all(
    `select current_user::text as name, pg_is_in_recovery()::text as is_replica,
      current_setting('transaction_read_only') as is_read_only,
      has_database_privilege(current_database(), 'temp')::text as may_stage,
      coalesce((select has_schema_privilege(oid, 'create') and has_schema_privilege(oid, 'usage')
          from pg_namespace where nspname = ${schema}),
        has_database_privilege(current_database(), 'create'))::text as may_create,
      (select relowner::regrole::text from pg_class where relname = ${literal(ownerTable)}
        and relnamespace = (select oid from pg_namespace where nspname = ${schema})
        and not pg_has_role(relowner, 'usage')) as other_owner`,
  )
  const { name, is_replica: isReplica, is_read_only: isReadOnly, may_stage: mayStage } = found
  if (isReplica === 'true')
    return `The server of ${where} is a read replica. Name the primary in WAREHOUSE_URL.`
  if (isReadOnly === 'on')
    return `The user ${name} may only read in ${where} (default_transaction_read_only). Set it to off for this user and database, or correct WAREHOUSE_URL.`
  if (found['may_create'] !== 'true')
    return `The user ${name} may not create tables in ${where}. Grant create on the database, or on that schema, or correct WAREHOUSE_URL.`
  if (mayStage !== 'true')
    return `The user ${name} may not create temporary tables for ${where}. Grant temporary on the database.`
  const owner = found['other_owner']
  return typeof owner === 'string'
    ? `The tables in ${where} belong to ${owner}, and the user ${name} may not change them. Use that user, or grant its role.`
    : undefined
}
