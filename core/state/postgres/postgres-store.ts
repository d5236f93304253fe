import { randomUUID } from 'node:crypto'
import {
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  PostgresAdapter,
  PostgresDialect,
  type PostgresDialectConfig,
  PostgresDriver,
  sql,
} from 'kysely'
import { NoStateError } from '../errors.ts'
import { migrateStore } from '../migrate.ts'
import { up as first } from '../migrations/postgres/0001-first.ts'
import { up as senders } from '../migrations/postgres/0005-senders.ts'
import { up as rates } from '../migrations/postgres/0006-rates.ts'
import { up as publications } from '../migrations/postgres/0007-publications.ts'
import { up as earlierStates } from '../migrations/postgres/0009-earlier-states.ts'
import { up as permitTimes } from '../migrations/postgres/0010-permit-times.ts'
import { up as seenClaims } from '../migrations/postgres/0011-seen-claims.ts'
import { createPermits } from '../permits.ts'
import type { IsIn, Store } from '../store.ts'
import type { StateTables } from '../tables.ts'
import { createPool } from './pool.ts'
import { StateRefusedError } from './postgres-errors.ts'
import { refuseUnsafeServer } from './server-problems.ts'
import { startClock } from './store-clock.ts'

/** Where a state is kept on PostgreSQL. */
export interface StateDatabase {
  /** postgres://user:password@host/database */
  url: string
  schema: string
}

/** The name of a state for people, without user and password. */
export function placeOf({ url, schema }: StateDatabase): string {
  const { host, pathname } = new URL(url)
  return `the schema ${schema} of ${host || 'localhost'}${pathname}`
}

/** What an older SQLite file needs, and a schema here never did. */
const nothingToChange = { up: async () => {} }

const migrations = {
  '0001-first': { up: first },
  '0002-attempts-before': nothingToChange,
  '0003-row-keys': nothingToChange,
  '0004-names': nothingToChange,
  '0005-senders': { up: senders },
  '0006-rates': { up: rates },
  '0007-publications': { up: publications },
  '0008-row-writes': nothingToChange,
  '0009-earlier-states': { up: earlierStates },
  '0010-permit-times': { up: permitTimes },
  '0011-seen-claims': { up: seenClaims },
}

/**
 * Set for each transaction: behind pgbouncer, a session has no settings of its own. A sender that freezes inside a
 * transaction holds its rows until PostgreSQL ends its session.
 */
const transactionSettings = `set local synchronous_commit = on; set local lock_timeout = '5s';
  set local statement_timeout = '30s'; set local idle_in_transaction_session_timeout = '10s'`

class StateDriver extends PostgresDriver {
  readonly #begin: string
  constructor(config: PostgresDialectConfig, { readOnly }: { readOnly: boolean }) {
    super(config)
    const mode = readOnly ? 'read only' : 'read write'
    this.#begin = `begin isolation level read committed ${mode}; ${transactionSettings}`
  }
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw(this.#begin))
  }
}

/** Migrations hold a lock of their own, for the time of their transaction: a lock of the session is lost by pgbouncer. */
class StateAdapter extends PostgresAdapter {
  override async acquireMigrationLock(): Promise<void> {}
  override async releaseMigrationLock(): Promise<void> {}
}

class StateDialect extends PostgresDialect {
  readonly #options: DialectOptions
  constructor(options: DialectOptions) {
    const { pool } = options
    super({ pool })
    this.#options = options
  }
  override createDriver(): PostgresDriver {
    return new StateDriver(this.#options, this.#options)
  }
  override createAdapter(): PostgresAdapter {
    return new StateAdapter()
  }
}

interface DialectOptions extends PostgresDialectConfig {
  readOnly: boolean
}

/** Eight connections for each worker: two of them for claims, answers and take-overs alone, one for permits. */
const connections = { reads: 5, writes: 2, permits: 1 }

const clockEveryMs = 10_000

/** Opens the state in a schema of PostgreSQL, and creates and migrates it unless it is opened for reading. */
export async function openPostgresStore(options: {
  database: StateDatabase
  readOnly: boolean
  /** Called with the jump of the server's clock in ms. */
  onClockJump?: ((ms: number) => void) | undefined
}): Promise<Store> {
  const { database, readOnly, onClockJump } = options
  const { url, schema } = database
  const place = placeOf(database)
  const open = (max: number) =>
    new Kysely<StateTables>({
      dialect: new StateDialect({ pool: createPool({ url, place, max, readOnly }), readOnly }),
    }).withSchema(schema)
  const [db, writes] = [open(connections.reads), open(connections.writes)]
  const forPermits = open(connections.permits)
  const close = async () => {
    await Promise.all([db.destroy(), writes.destroy(), forPermits.destroy()])
  }
  try {
    if (!readOnly) await refuseUnsafeServer({ db, place })
    await migrate({ db, schema, place, readOnly })
    const permits = createPermits({ db: forPermits, schema, worker: randomUUID() })
    if (!readOnly) await permits.begin()
    const clock = await startClock({ ask: () => askTime(db), onJump: onClockJump })
    const timer = setInterval(() => void clock.measure().catch(() => undefined), clockEveryMs).unref()
    return {
      place,
      db,
      writes,
      isIn,
      isShared: true,
      permits,
      now: () => clock.now(),
      close: async () => {
        clearInterval(timer)
        await close()
      },
    }
  } catch (error) {
    await close()
    throw error
  }
}

const isIn: IsIn = (column, values) => sql`${sql.ref(column)} = any(${values})`

async function askTime(db: Kysely<StateTables>): Promise<number> {
  const { rows } = await sql<{
    ms: number
  }>`select extract(epoch from clock_timestamp()) * 1000 as ms`.execute(db)
  return rows[0]?.ms ?? Number.NaN
}

async function migrate(options: {
  db: Kysely<StateTables>
  schema: string
  place: string
  readOnly: boolean
}) {
  const { db, schema, place, readOnly } = options
  if (readOnly) {
    const applied = await appliedMigrations({ db, schema })
    if (applied.length === 0)
      throw (await mayCreate({ db, schema })) ? new NoStateError({ place }) : noRight(place)
    return await migrateStore({ ...options, migrations, applied: async () => applied })
  }
  await db.transaction().execute(async (transaction) => {
    // Two workers that start together: the second one waits, and finds everything done.
    await sql`select pg_advisory_xact_lock(hashtextextended(${`connector ${schema}`}, 0))`.execute(
      transaction,
    )
    await sql`set local search_path = ${sql.id(schema)}`.execute(transaction)
    const applied = () => appliedMigrations({ db: transaction, schema })
    await migrateStore({ db: transaction, schema, place, readOnly, migrations, applied })
  })
}

async function appliedMigrations({ db, schema }: { db: Kysely<StateTables>; schema: string }) {
  const table = sql.id(schema, 'kysely_migration')
  const found =
    await sql`select 1 from pg_tables where schemaname = ${schema} and tablename = 'kysely_migration'`.execute(
      db,
    )
  if (found.rows.length === 0) return []
  const { rows } = await sql<{ name: string }>`select name from ${table} order by name`.execute(db)
  return rows.map(({ name }) => name)
}

const noRight = (place: string) =>
  new StateRefusedError({ place, cause: new Error('the user may not create it') })

async function mayCreate({ db, schema }: { db: Kysely<StateTables>; schema: string }): Promise<boolean> {
  const { rows } = await sql<{ allowed: boolean }>`select coalesce(
    (select has_schema_privilege(oid, 'create, usage') from pg_namespace where nspname = ${schema}),
    has_database_privilege(current_database(), 'create')) as allowed`.execute(db)
  return rows[0]?.allowed === true
}
