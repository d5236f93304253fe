import type { DuckDBConnection } from '@duckdb/node-api'
import { mkdir, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { removeTemporaries, temporaryName } from '../../storage/durable.ts'
import { WarehouseRefusedError } from '../errors.ts'
import type { Warehouse } from '../destination.ts'
import { createWarehouse } from '../warehouse/publish.ts'
import type { Scope, WarehouseEngine, WarehouseSession } from '../warehouse/session.ts'
import { stagedName } from '../sql.ts'
import { collectGarbage } from './collect-garbage.ts'
import { duckDbTypes } from './column-types.ts'
import { toDuckDbError } from './duckdb-errors.ts'
import { type MemoryLimit, openDuckDb, withEnoughMemory } from './open-duckdb.ts'
import { readRows, streamRows } from './read-rows.ts'
import { readExactly } from './read-exactly.ts'
import { createKeyedMutex } from '../../storage/keyed-mutex.ts'

/** Destination for a DuckDB database file: `warehouse.duckdb`, or `warehouse-test.duckdb` for test data. */
export const createDuckDbDestination = (options: { folder: string }): Warehouse =>
  createWarehouse(createDuckDbEngine(options))

/** DuckDB allows one writing process, and two instances in one process would corrupt the file. */
const mutex = createKeyedMutex()

function createDuckDbEngine({ folder }: { folder: string }): WarehouseEngine {
  const locate = ({ testMode }: Pick<Scope, 'testMode'>) =>
    resolve(folder, testMode ? 'warehouse-test.duckdb' : 'warehouse.duckdb')
  return {
    name: 'duckdb',
    locate,
    // No path: the file is in the data folder, which may be moved together with its watermarks.
    placeOf: ({ testMode }) => (testMode ? 'test' : 'live'),
    async transaction(scope, work) {
      const path = locate(scope)
      if (scope.readOnly !== true) {
        await mkdir(dirname(path), { recursive: true })
        collectGarbage()
      } else if (!(await stat(path).catch(() => undefined)))
        throw new WarehouseRefusedError(`There is no warehouse ${path}.`)
      return mutex.runExclusive(path, () =>
        withEnoughMemory('96MB', (memoryLimit) => transact({ path, memoryLimit, scope, work })).catch(
          (error: unknown) => {
            scope.signal?.throwIfAborted()
            throw toDuckDbError(error, { path, readOnly: scope.readOnly === true })
          },
        ),
      )
    },
  }
}

async function transact<T>(options: {
  path: string
  memoryLimit: MemoryLimit
  scope: Scope
  work: (session: WarehouseSession) => Promise<T>
}): Promise<T> {
  const { path, memoryLimit, work } = options
  const { signal, readOnly = false } = options.scope
  signal?.throwIfAborted()
  const beside = temporaryName(path)
  const database = await openDuckDb({ path, memoryLimit, readOnly })
  const { connection } = database
  const interrupt = () => connection.interrupt()
  try {
    // The file is locked by us from here on, so temporaries beside it were left by a crash. Readers do not
    // remove them: there may be several.
    if (!readOnly) await removeTemporaries(path)
    await database.spillTo(join(beside, 'spill'))
    signal?.addEventListener('abort', interrupt)
    const session = createSession(connection, signal)
    const result = await work(session)
    signal?.removeEventListener('abort', interrupt)
    await session.commit()
    return result
  } finally {
    signal?.removeEventListener('abort', interrupt)
    // Without a commit, this rolls everything back.
    database.close()
    await rm(beside, { recursive: true, force: true })
  }
}

function createSession(
  connection: DuckDBConnection,
  signal: AbortSignal | undefined,
): WarehouseSession & { commit(): Promise<void> } {
  let begun = false
  // `rowsChanged` is 0 for `create table ... as`; the result itself has the number.
  const run = async (sql: string) => Number((await (await connection.run(sql)).getRows())[0]?.[0] ?? 0)
  return {
    typeSystem: duckDbTypes,
    // An error ends a transaction, and a row that does not fit is one.
    fillsNewTables: false,
    schema: 'main',
    run,
    all: (sql) => readRows(connection, sql),
    stream: (sql) => streamRows(connection, sql),
    async describe() {
      const rows = await readRows(
        connection,
        `select table_name, column_name, data_type from duckdb_columns()
        where database_name = current_database() and schema_name = 'main' and not internal
        order by table_name, column_index`,
      )
      const tables = new Map<string, Map<string, string>>()
      for (const { table_name: table, column_name: column, data_type: type } of rows) {
        const columns = tables.get(table ?? '') ?? new Map<string, string>()
        tables.set(table ?? '', columns.set(column ?? '', type ?? ''))
      }
      return tables
    },
    async stage(staging) {
      let rows = 0
      const types = await readExactly({
        ...staging,
        has: staging.types,
        connection,
        signal,
        take: async (query) => {
          rows = await run(
            `create or replace temporary table ${stagedName(staging.table.table.name)} as ${query}`,
          )
        },
      })
      return { rows, types, isFilled: false }
    },
    // We are the file's only writer, and staged tables are private to the session.
    async lock() {
      if (!begun) await connection.run('begin')
      begun = true
    },
    // DuckDB reparses a view's text at each use and has no permissions.
    othersViews: () => Promise.resolve([]),
    grantsOn: () => Promise.resolve([]),
    async commit() {
      if (begun) await connection.run('commit')
    },
  }
}
