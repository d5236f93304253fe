import { Kysely, SqliteDialect, sql } from 'kysely'
import type { Migration } from 'kysely/migration'
import { migrateStore } from '../migrate.ts'
import { up as first } from '../migrations/sqlite/0001-first.ts'
import { up as attemptsBefore } from '../migrations/sqlite/0002-attempts-before.ts'
import { up as rowKeys } from '../migrations/sqlite/0003-row-keys.ts'
import { up as names } from '../migrations/sqlite/0004-names.ts'
import { up as senders } from '../migrations/sqlite/0005-senders.ts'
import { up as earlierStates } from '../migrations/sqlite/0009-earlier-states.ts'
import { up as seenClaims } from '../migrations/sqlite/0011-seen-claims.ts'
import type { IsIn, Store } from '../store.ts'
import type { StateTables } from '../tables.ts'
import { nodeSqlite } from './node-sqlite.ts'
import { appliedMigrations, openStateFile, type SqliteMigration } from './state-file.ts'

const migrations = {
  '0001-first': { up: first },
  '0002-attempts-before': { up: attemptsBefore },
  '0003-row-keys': { up: rowKeys },
  '0004-names': { up: names },
  '0005-senders': { up: senders },
  // PostgreSQL's alone.
  '0006-rates': { up: async () => {} },
  '0007-publications': { up: async () => {} },
  '0008-row-writes': { up: async () => {} },
  '0009-earlier-states': { up: earlierStates },
  '0010-permit-times': { up: async () => {} },
  '0011-seen-claims': { up: seenClaims },
} satisfies Record<SqliteMigration, Migration>

/** Opens `state.db`, and creates and migrates it unless it is opened for reading. */
export async function openSqliteStore(options: {
  folder: string
  file: string
  readOnly: boolean
}): Promise<Store> {
  const { file, readOnly } = options
  const database = openStateFile(options)
  const dialect = new SqliteDialect({ database: nodeSqlite({ database, file }) })
  const db = new Kysely<StateTables>({ dialect })
  try {
    const applied = () => Promise.resolve(appliedMigrations({ database, file }))
    // Each of some sixty statements would wait for the disk. A migration that a power failure undoes is applied again.
    await migrateStore({ db, place: file, readOnly, migrations, applied })
    if (!readOnly) database.exec('pragma synchronous = full')
  } catch (error) {
    if (database.isOpen) database.close()
    throw error
  }
  return {
    place: file,
    db,
    writes: db,
    isIn,
    isShared: false,
    now: Date.now,
    close: () => db.destroy(),
  }
}

/** SQLite allows at most 32,766 parameters. */
const isIn: IsIn = (column, values) =>
  sql`${sql.ref(column)} in (select value from json_each(${JSON.stringify(values)}))`
