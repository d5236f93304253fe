import type { Kysely } from 'kysely'
import { type Migration, Migrator } from 'kysely/migration'
import { StateTooOldError } from './errors.ts'
import { isUpToDate } from './is-up-to-date.ts'
import type { StateTables } from './tables.ts'

/**
 * Applies the migrations that a store lacks. Both dialects have the same numbers and names.
 *
 * @throws {StateTooNewError} it has a migration that this version does not know
 * @throws {StateTooOldError} with `readOnly`
 */
export async function migrateStore(options: {
  db: Kysely<StateTables>
  /** The store's name for people. */
  place: string
  readOnly: boolean
  migrations: Record<string, Migration>
  /** The names of the migrations that were applied. */
  applied: () => Promise<string[]>
  /** The schema of PostgreSQL. */
  schema?: string
}): Promise<void> {
  const { db, place, readOnly, migrations, schema } = options
  if (isUpToDate({ place, known: Object.keys(migrations), applied: await options.applied() })) return
  if (readOnly) throw new StateTooOldError({ file: place })
  const provider = { getMigrations: async () => migrations }
  const migrator = new Migrator({
    db,
    provider,
    ...(schema !== undefined && { migrationTableSchema: schema }),
  })
  const { error } = await migrator.migrateToLatest()
  if (error !== undefined) throw error
}
