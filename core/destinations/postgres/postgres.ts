import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { Client, type ClientConfig } from 'pg'
import type { Publication, Warehouse } from '../destination.ts'
import { WarehouseRefusedError } from '../errors.ts'
import { toWarehouseTable, quote, stagedName } from '../layout.ts'
import { checkTables } from '../parts.ts'
import { checkBeforeRead, checkOwner } from '../warehouse/admission.ts'
import { compareExport } from '../warehouse/compare.ts'
import { coverageOf } from '../warehouse/coverage.ts'
import { ownerTable } from '../warehouse/exports.ts'
import { publishTo } from '../warehouse/publish.ts'
import { toPostgresError } from './errors.ts'
import { copyInto, createStaged, type Session, toSession, valueOf } from './database.ts'

type Scope = Pick<Publication, 'testMode' | 'schema' | 'signal'>

/** `read` changes nothing, `compare` writes temporary tables alone; both see one state of the database. */
type Purpose = 'publish' | 'read' | 'compare'

export interface PostgresWarehouse extends Warehouse {
  /** Why exports of this owner can't be written there, in a sentence; undefined if they can. */
  findRefusal(owner: Pick<Publication, 'workspace' | 'baseUrl' | 'testMode'>): Promise<string | undefined>
  locate(scope: Scope): string
}

/**
 * Destination for a schema of a PostgreSQL database (14 or newer, UTF-8): `billing`, or `billing_test` for
 * test data, unless a publication names another.
 * @throws {WarehouseRefusedError} the address is invalid
 */
export function createPostgresDestination(options: { url: string }): PostgresWarehouse {
  const address = parseAddress(options.url)
  const locate = (scope: Scope) => `schema ${schemaOf(scope)} of ${address.name}`
  const inTransaction = async <T>(
    purpose: Purpose,
    scope: Scope,
    work: (session: Session) => Promise<T>,
  ): Promise<T> => {
    try {
      return await transact({ address, purpose, scope, where: locate(scope), work })
    } catch (error) {
      throw toPostgresError(error, { where: locate(scope), isPublishing: purpose === 'publish' })
    }
  }
  return {
    name: 'postgres',
    locate,
    async publish(publication) {
      publication.signal?.throwIfAborted()
      checkTables(publication)
      const published = await inTransaction('publish', publication, (session) =>
        publishTo(session, publication),
      )
      publication.onStep?.('visible')
      return { ...published, location: locate(publication) }
    },
    checkBeforeRead: (scope, of) => inTransaction('read', scope, (session) => checkBeforeRead(session, of)),
    placeOf: (scope) => Promise.resolve(locate(scope)),
    coveredThrough: (scope, view) => inTransaction('read', scope, (session) => coverageOf(session, view)),
    compare: ({ manifest, folder, schema, signal }) =>
      inTransaction(
        'compare',
        {
          testMode: manifest.testMode,
          ...(schema !== undefined && { schema }),
          ...(signal !== undefined && { signal }),
        },
        (session) =>
          compareExport(session, manifest, async (table) => {
            await createStaged(session, table)
            for (const { path } of table.files)
              await copyInto(session, table, createReadStream(join(folder, path)), ', header')
            const values = toWarehouseTable(table).columns.map(
              (column) => `${valueOf(column)} as ${quote(column.name)}`,
            )
            return `(select ${values.join(', ')} from ${stagedName(table.name)} s)`
          }),
      ),
    findRefusal: (owner) => inTransaction('publish', owner, (session) => findRefusal(session, owner)),
  }
}

const schemaOf = ({ schema, testMode }: Scope) => schema ?? (testMode ? 'billing_test' : 'billing')

async function transact<T>(options: {
  address: Address
  purpose: Purpose
  scope: Scope
  where: string
  work: (session: Session) => Promise<T>
}): Promise<T> {
  const { address, purpose, scope, where, work } = options
  const { signal } = scope
  const client = new Client(address.config)
  // An error outside a query (the server went away) also fails the next query, which reports it.
  client.on('error', () => {})
  // The server rolls back when the connection is gone, whatever it is busy with.
  const leave = () => void client.end().catch(() => {})
  try {
    await client.connect()
    signal?.addEventListener('abort', leave)
    const session = toSession(client, { schema: schemaOf(scope), where })
    await begin(session, purpose, address)
    const result = await work(session)
    signal?.throwIfAborted()
    signal?.removeEventListener('abort', leave)
    await client.query(purpose === 'publish' ? 'commit' : 'rollback')
    return result
  } catch (error) {
    signal?.throwIfAborted()
    throw error
  } finally {
    signal?.removeEventListener('abort', leave)
    await client.end().catch(() => {})
  }
}

/** How long a publication waits for another publication or a reader's lock before it fails. */
const lockTimeout = '60s'

const isolationFor: Readonly<Record<Purpose, string>> = {
  publish: 'read committed',
  read: 'repeatable read read only',
  compare: 'repeatable read',
}

async function begin(session: Session, purpose: Purpose, address: Address): Promise<void> {
  // Overrides settings of the server or the role at once, before a timeout of theirs can end this; staged rows and joins get
  // some memory.
  await session.client.query(`begin isolation level ${isolationFor[purpose]};
    set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0;
    set local search_path = pg_catalog; set local lock_timeout = '${lockTimeout}';
    set local temp_buffers = '32MB'; set local work_mem = '64MB'; set local jit = off;
    set local timezone = 'UTC'; set local datestyle = 'ISO'; set local standard_conforming_strings = on;
    set local quote_all_identifiers = off; set local transform_null_equals = off;
    set local client_min_messages = warning`)
  const [row] = await session.all(`select current_setting('server_encoding') as encoding`)
  if (row?.['encoding'] !== 'UTF8')
    throw new WarehouseRefusedError(
      `The database ${address.name} has the encoding ${row?.['encoding']}, which can't hold every text. Nothing was` +
        ' written: make a database with the encoding UTF8.',
    )
}

async function findRefusal(
  session: Session,
  owner: Pick<Publication, 'workspace' | 'baseUrl' | 'testMode'>,
): Promise<string | undefined> {
  const { schema, where } = session
  await checkOwner(session, await session.describe(), owner)
  // Several rights in one text would mean any of them.
  const [found = {}] = await session.all(
    `select current_user::text as name, pg_is_in_recovery()::text as is_replica,
      current_setting('transaction_read_only') as is_read_only,
      has_database_privilege(current_database(), 'temp')::text as may_stage,
      coalesce((select has_schema_privilege(oid, 'create') and has_schema_privilege(oid, 'usage')
          from pg_namespace where nspname = $1),
        has_database_privilege(current_database(), 'create'))::text as may_create,
      (select relowner::regrole::text from pg_class where relname = $2
        and relnamespace = (select oid from pg_namespace where nspname = $1)
        and not pg_has_role(relowner, 'usage')) as other_owner`,
    [schema, ownerTable],
  )
  const { name, other_owner: otherOwner } = found
  if (found['is_replica'] === 'true')
    return `The server of ${where} is a read replica. Name the primary in WAREHOUSE_URL.`
  if (found['is_read_only'] === 'on')
    return `The user ${name} may only read in ${where} (default_transaction_read_only). Set it to off for this user and database, or correct WAREHOUSE_URL.`
  if (found['may_create'] !== 'true')
    return `The user ${name} may not create tables in ${where}. Grant create on the database, or on that schema, or correct WAREHOUSE_URL.`
  if (found['may_stage'] !== 'true')
    return `The user ${name} may not create temporary tables for ${where}. Grant temporary on the database.`
  return typeof otherOwner === 'string'
    ? `The tables in ${where} belong to ${otherOwner}, and the user ${name} may not change them. Use that user, or grant its role.`
    : undefined
}

/** The address and login of a PostgreSQL server. The password is in `config` only. */
export interface Address {
  config: ClientConfig
  /** `host:port/database`, for people. */
  name: string
}

function isDecodable({ username, password, pathname }: URL): boolean {
  try {
    for (const part of [username, password, pathname]) decodeURIComponent(part)
    return true
  } catch {
    return false
  }
}

/**
 * Parses `postgres://user:password@host:port/database?sslmode=...`.
 * @throws {WarehouseRefusedError} without the address: a password may be anywhere in it
 */
export function parseAddress(url: string): Address {
  const parsed = URL.parse(url)
  if (parsed === null || !isDecodable(parsed)) {
    throw new WarehouseRefusedError(
      'The address of the warehouse (WAREHOUSE_URL) is not a URL. It has to be postgres://user:password@host:5432/database,' +
        ' with what is special in the password percent-encoded.',
    )
  }
  if (!/^postgres(ql)?:$/.test(parsed.protocol))
    throw new WarehouseRefusedError(
      `The address of the warehouse (WAREHOUSE_URL) has to begin with postgres://, not ${parsed.protocol}//.`,
    )
  const database = decodeURIComponent(parsed.pathname.slice(1))
  return {
    name: `${parsed.host || 'localhost'}/${database}`,
    config: {
      connectionString: url,
      application_name: 'connector',
      connectionTimeoutMillis: 15_000,
      keepAlive: true,
      // Otherwise the system's two hours: a statement of minutes is silent, and networks drop connections that are.
      keepAliveInitialDelayMillis: 30_000,
    },
  }
}
