import { Client } from 'pg'
import { WarehouseRefusedError } from '../errors.ts'
import { createWarehouse, type Warehouse } from '../warehouse/publish.ts'
import type { ResultRow, Scope, WarehouseEngine, WarehouseSession } from '../warehouse/session.ts'
import { literal, quote } from '../sql.ts'
import { parseAddress, type Address } from './address.ts'
import { toPostgresError } from './postgres-errors.ts'
import { stageCopy } from './stage-copy.ts'
import { postgresTypes } from './column-types.ts'

/**
 * Destination for a schema of a PostgreSQL database (14 or newer, UTF-8): `billing`, or `billing_test` for
 * test data, unless a publication names another.
 * @throws {WarehouseRefusedError} the address is invalid
 */
export function createPostgresDestination(options: { url: string }): Warehouse {
  return createWarehouse(createPostgresEngine(parseAddress(options.url)))
}

function createPostgresEngine(address: Address): WarehouseEngine {
  const locate = (scope: Scope) => `schema ${schemaOf(scope)} of ${address.name}`
  return {
    name: 'postgres',
    locate,
    placeOf: locate,
    async transaction(scope, work) {
      try {
        return await transact({ address, scope, work })
      } catch (error) {
        throw toPostgresError(error, { where: locate(scope), readOnly: scope.readOnly ?? false })
      }
    },
  }
}

const schemaOf = ({ schema, testMode }: Scope) => schema ?? (testMode ? 'billing_test' : 'billing')

/** How long a publication waits for another publication or a reader's lock before it fails. */
const lockTimeout = '60s'

async function transact<T>(options: {
  address: Address
  scope: Scope
  work: (session: WarehouseSession) => Promise<T>
}): Promise<T> {
  const { address, scope, work } = options
  const { signal } = scope
  const client = new Client(address.config)
  // An error outside a query (the server went away) also fails the next query, which reports it.
  client.on('error', () => {})
  // The server rolls back when the connection is gone, whatever it is busy with.
  const leave = () => void client.end().catch(() => {})
  try {
    await client.connect()
    signal?.addEventListener('abort', leave)
    await begin(client, { address, readOnly: scope.readOnly ?? false })
    const result = await work(createSession(client, scope))
    signal?.throwIfAborted()
    signal?.removeEventListener('abort', leave)
    await client.query('commit')
    return result
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', leave)
    await client.end().catch(() => {})
  }
}

async function begin(client: Client, of: { address: Address; readOnly: boolean }): Promise<void> {
  const { address, readOnly } = of
  // A comparison needs one consistent snapshot, however long it takes. What a server or role may have configured is
  // overridden at once, before a timeout of theirs; staged rows and joins get some memory.
  await client.query(`begin isolation level ${readOnly ? 'repeatable read read only' : 'read committed'};
    set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0;
    set local search_path = pg_catalog; set local lock_timeout = '${lockTimeout}';
    set local temp_buffers = '32MB'; set local work_mem = '64MB'; set local jit = off;
    set local timezone = 'UTC'; set local datestyle = 'ISO'; set local standard_conforming_strings = on;
    set local quote_all_identifiers = off; set local transform_null_equals = off;
    set local client_min_messages = warning`)
  const { rows } = await client.query<{ encoding: string }>(
    `select current_setting('server_encoding') as encoding`,
  )
  if (rows[0]?.encoding !== 'UTF8')
    throw new WarehouseRefusedError(
      `The database ${address.name} has the encoding ${rows[0]?.encoding}, which can't hold every text. Nothing was` +
        ' written: make a database with the encoding UTF8.',
    )
}

const fetchSome = 'fetch 2000 from streamed'

function createSession(client: Client, scope: Scope): WarehouseSession {
  const schema = schemaOf(scope)
  const all = async (text: string): Promise<ResultRow[]> => {
    const { rows } = await client.query<ResultRow>({
      text,
      types: { getTypeParser: () => (value: unknown) => value },
    })
    return rows
  }
  return {
    typeSystem: postgresTypes,
    fillsNewTables: true,
    schema,
    run: async (sql) => (await client.query(sql)).rowCount ?? 0,
    all,
    async *stream(sql) {
      await client.query(`declare streamed no scroll cursor for ${sql}`)
      for (let rows = await all(fetchSome); rows.length > 0; rows = await all(fetchSome)) yield* rows
      await client.query('close streamed')
    },
    async describe() {
      const rows = await all(`select c.relname as table_name, a.attname as column_name,
          format_type(a.atttypid, a.atttypmod) as data_type
        from pg_attribute a join pg_class c on c.oid = a.attrelid join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = ${literal(schema)} and c.relkind in ('r', 'p', 'v', 'm', 'f') and a.attnum > 0
          and not a.attisdropped
        order by c.relname, a.attnum`)
      const tables = new Map<string, Map<string, string>>()
      for (const { table_name: table, column_name: column, data_type: type } of rows) {
        const columns = tables.get(table ?? '') ?? new Map<string, string>()
        tables.set(table ?? '', columns.set(column ?? '', type ?? ''))
      }
      return tables
    },
    stage: (staging) => stageCopy({ ...staging, client, schema, signal: scope.signal }),
    async lock(tables) {
      await client.query(
        `select pg_advisory_xact_lock(hashtextextended(${literal(`billing-connector ${schema}`)}, 0))`,
      )
      // `if not exists` requires the right to create the schema even if it exists.
      const [found] = await all(`select 1 from pg_namespace where nspname = ${literal(schema)}`)
      if (found === undefined) await client.query(`create schema ${quote(schema)}`)
      const there =
        await all(`select c.relname as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
        where n.nspname = ${literal(schema)} and c.relkind in ('r', 'p') and c.relname in (${tables.map(literal).join(', ')})`)
      const names = there.map(({ name }) => `${quote(schema)}.${quote(name ?? '')}`)
      if (names.length > 0) await client.query(`lock table ${names.join(', ')} in share row exclusive mode`)
    },
    async othersViews(relations) {
      const names = relations.map((name) => literal(`${quote(schema)}.${quote(name)}`)).join(', ')
      const rows =
        await all(`with own as (select to_regclass(name)::oid as oid from unnest(array[${names}]) name)
        select distinct r.ev_class::regclass::text as name
        from pg_depend d join pg_rewrite r on r.oid = d.objid join own on own.oid = d.refobjid
        where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_class'::regclass
          and not exists (select 1 from own where own.oid = r.ev_class)
        order by 1`)
      return rows.map((row) => row['name'] ?? '')
    },
    async grantsOn(view) {
      const rows = await all(`select privilege_type as privilege, is_grantable::text as grantable,
          case when grantee = 0 then 'public' else grantee::regrole::text end as role
        from pg_class, aclexplode(relacl)
        where oid = to_regclass(${literal(`${quote(schema)}.${quote(view)}`)}) and grantee <> relowner`)
      return rows.map(
        ({ privilege, role, grantable }) =>
          `grant ${privilege} on ${quote(schema)}.${quote(view)} to ${role}${grantable === 'true' ? ' with grant option' : ''}`,
      )
    },
  }
}
