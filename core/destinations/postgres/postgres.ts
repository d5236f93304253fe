import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { Client } from 'pg'
import type { Publication, Warehouse } from '../destination.ts'
import { WarehouseRefusedError } from '../errors.ts'
import { toWarehouseTable, quote, stagedName } from '../layout.ts'
import { checkTables } from '../parts.ts'
import { checkBeforeRead, checkOwner } from '../warehouse/admission.ts'
import { compareExport } from '../warehouse/compare.ts'
import { coverageOf } from '../warehouse/coverage.ts'
import { ownerTable } from '../warehouse/exports.ts'
import { publishTo } from '../warehouse/publish.ts'
import { type Purpose, toPostgresError } from './errors.ts'
import { copyInto, createSchema, createStaged, type Session, toSession, valueOf } from './database.ts'

type Scope = Pick<Publication, 'testMode' | 'schema' | 'signal'>

type Owner = Pick<Publication, 'workspace' | 'baseUrl' | 'testMode'>

export interface PostgresWarehouse extends Warehouse {
  /**
   * Tries whether exports of this owner can be written there.
   * @throws {WarehouseAwayError | WarehouseRefusedError | NotAdmittedError}
   */
  tryOut(owner: Owner): Promise<void>
  locate(scope: Scope): string
}

/**
 * Destination for a schema of a PostgreSQL database (14 or newer, UTF-8): `billing`, or `billing_test` for
 * test data, unless a publication names another.
 */
export function createPostgresDestination(options: { url: string }): PostgresWarehouse {
  const { url } = options
  const locate = (scope: Scope) => `schema ${schemaOf(scope)} of ${nameOf(url)}`
  const inTransaction = async <T>(
    purpose: Purpose,
    scope: Scope,
    work: (session: Session) => Promise<T>,
  ): Promise<T> => {
    try {
      return await transact({ url, purpose, scope, where: locate(scope), work })
    } catch (error) {
      throw toPostgresError(error, { where: locate(scope), purpose })
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
    tryOut: (owner) => inTransaction('try', owner, (session) => tryOut(session, owner)),
  }
}

const schemaOf = ({ schema, testMode }: Scope) => schema ?? (testMode ? 'billing_test' : 'billing')

async function transact<T>(options: {
  url: string
  purpose: Purpose
  scope: Scope
  where: string
  work: (session: Session) => Promise<T>
}): Promise<T> {
  const { url, purpose, scope, where, work } = options
  const { signal } = scope
  const client = new Client({
    connectionString: url,
    application_name: 'connector',
    connectionTimeoutMillis: 15_000,
    keepAlive: true,
    // Otherwise the system's two hours: a statement of minutes is silent, and networks drop connections that are.
    keepAliveInitialDelayMillis: 30_000,
  })
  // An error outside a query (the server went away) also fails the next query, which reports it.
  client.on('error', () => {})
  // The server rolls back when the connection is gone, whatever it is busy with.
  const leave = () => void client.end().catch(() => {})
  try {
    await client.connect()
    signal?.addEventListener('abort', leave)
    const session = toSession(client, { schema: schemaOf(scope), where })
    await begin(session, purpose, nameOf(url))
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
  try: 'read committed',
  read: 'repeatable read read only',
  compare: 'repeatable read',
}

async function begin(session: Session, purpose: Purpose, database: string): Promise<void> {
  // Overrides settings of the server or the role at once, before a timeout of theirs can end this (PostgreSQL 17 has one more);
  // staged rows and joins get some memory. What is told to be published is on the disk, and a policy that hides rows is an error.
  await session.client.query(`begin isolation level ${isolationFor[purpose]};
    set local statement_timeout = 0; set local idle_in_transaction_session_timeout = 0;
    select set_config(name, '0', true) from pg_settings where name = 'transaction_timeout';
    select set_config(name, 'on', true) from pg_settings where name = 'synchronous_commit' and setting = 'off';
    set local row_security = off;
    set local search_path = pg_catalog; set local lock_timeout = '${lockTimeout}';
    set local temp_buffers = '32MB'; set local work_mem = '64MB'; set local jit = off;
    set local timezone = 'UTC'; set local datestyle = 'ISO'; set local standard_conforming_strings = on;
    set local quote_all_identifiers = off; set local transform_null_equals = off;
    set local client_min_messages = warning`)
  const [row] = await session.all(`select current_setting('server_encoding') as encoding`)
  if (row?.['encoding'] !== 'UTF8')
    throw new WarehouseRefusedError(
      `The database ${database} has the encoding ${row?.['encoding']}, which can't hold every text. Nothing was` +
        ' written: make a database with the encoding UTF8.',
    )
}

/** Does what a publication has to be permitted, in a transaction that is rolled back. */
async function tryOut(session: Session, owner: Owner): Promise<void> {
  const tables = await session.describe()
  await checkOwner(session, tables, owner)
  await createSchema(session)
  const tried = session.nameOf('_tried')
  await session.run(`create temporary table _tried (); create table ${tried} (); select from ${tried}`)
  // Only its owner may add a column or an index.
  if (tables.has(ownerTable)) await session.run(`comment on table ${session.nameOf(ownerTable)} is null`)
}

/** The server and database of an address that the settings have accepted, for people: `host:port/database`. */
function nameOf(url: string): string {
  const { host, pathname } = new URL(url)
  return `${host || 'localhost'}/${decodeURIComponent(pathname.slice(1))}`
}
