import { randomUUID } from 'node:crypto'
import {
  CamelCasePlugin,
  CompiledQuery,
  type DatabaseConnection,
  Kysely,
  PostgresDialect,
  type PostgresDialectConfig,
  PostgresDriver,
  sql,
} from 'kysely'
import { NoStateError } from '../errors.ts'
import { createRateShares } from '../rate-shares.ts'
import { followClock } from '../store-clock.ts'
import type { IsIn, Store } from '../store.ts'
import { type StateTables, createStatements, isCurrent, schemaVersion } from '../schema.ts'
import { createPool, refusedState } from './pool.ts'
import { refuseUnsafeServer } from './server-problems.ts'

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

class StateDialect extends PostgresDialect {
  readonly #options: DialectOptions
  constructor(options: DialectOptions) {
    super(options)
    this.#options = options
  }
  override createDriver(): PostgresDriver {
    return new StateDriver(this.#options, this.#options)
  }
}

/** The name of a schema stays as it is. */
class ColumnNames extends CamelCasePlugin {
  readonly #schema: string
  constructor(schema: string) {
    super({ maintainNestedObjectKeys: true })
    this.#schema = schema
  }
  override snakeCase(name: string): string {
    return name === this.#schema ? name : super.snakeCase(name)
  }
}

interface DialectOptions extends PostgresDialectConfig {
  readOnly: boolean
}

/** Eight connections for each worker: two of them for claims, answers and take-overs alone, one for the rate. */
const connections = { reads: 5, writes: 2, rate: 1 }

/** Opens the state in a schema of PostgreSQL, and creates it unless it is opened for reading. */
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
      plugins: [new ColumnNames(schema)],
    }).withSchema(schema)
  const [db, writes] = [open(connections.reads), open(connections.writes)]
  const forRate = open(connections.rate)
  const close = async () => {
    await Promise.all([db.destroy(), writes.destroy(), forRate.destroy()])
  }
  try {
    if (!readOnly) await refuseUnsafeServer({ db, place })
    await createTables({ db, schema, place, readOnly })
    const clock = await followClock({ ask: () => askTime(db), onJump: onClockJump })
    return {
      place,
      db,
      writes,
      isIn,
      isShared: true,
      rateShares: createRateShares({ db: forRate, worker: randomUUID() }),
      now: () => clock.now(),
      close: async () => {
        clock.stop()
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

async function createTables(options: {
  db: Kysely<StateTables>
  schema: string
  place: string
  readOnly: boolean
}): Promise<void> {
  const { db, schema, place, readOnly } = options
  if (isCurrent({ place, version: await versionOf({ db, schema }) })) return
  if (readOnly) throw (await mayCreate({ db, schema })) ? new NoStateError({ place }) : noRight(place)
  await db.transaction().execute(async (transaction) => {
    // Two workers that start together: the second one waits, and finds everything done.
    await sql`select pg_advisory_xact_lock(hashtextextended(${`connector ${schema}`}, 0))`.execute(
      transaction,
    )
    if (isCurrent({ place, version: await versionOf({ db: transaction, schema }) })) return
    await sql`create schema if not exists ${sql.id(schema)}`.execute(transaction)
    await sql`set local search_path = ${sql.id(schema)}`.execute(transaction)
    for (const statement of createStatements('postgres')) await sql.raw(statement).execute(transaction)
    const createdAt = await askTime(transaction)
    const store = { id: randomUUID(), version: schemaVersion, createdAt: Math.round(createdAt) }
    await transaction.insertInto('store').values(store).execute()
  })
}

async function versionOf({ db, schema }: { db: Kysely<StateTables>; schema: string }) {
  const { rows } = await sql<{ name: string }>`select a.attname as name from pg_attribute a
    join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
    where n.nspname = ${schema} and c.relname = 'store'`.execute(db)
  if (rows.length === 0) return undefined
  if (!rows.some(({ name }) => name === 'version')) return 0
  return (await db.selectFrom('store').select('version').executeTakeFirstOrThrow()).version
}

const noRight = (place: string) => refusedState({ place, cause: new Error('the user may not create it') })

async function mayCreate({ db, schema }: { db: Kysely<StateTables>; schema: string }): Promise<boolean> {
  const { rows } = await sql<{ allowed: boolean }>`select coalesce(
    (select has_schema_privilege(oid, 'create, usage') from pg_namespace where nspname = ${schema}),
    has_database_privilege(current_database(), 'create')) as allowed`.execute(db)
  return rows[0]?.allowed === true
}
