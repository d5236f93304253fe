import type { DuckDBConnection } from '@duckdb/node-api'
import { mkdir, rm, stat } from 'node:fs/promises'
import { dirname, join, resolve } from 'node:path'
import { removeTemporaries, temporaryName } from '../../storage/durable.ts'
import { WarehouseRefusedError } from '../warehouse/errors.ts'
import { createWarehouse, type Warehouse } from '../warehouse/publish.ts'
import type { Scope, WarehouseEngine, WarehouseSession } from '../warehouse/session.ts'
import { stagedName } from '../warehouse/sql.ts'
import { duckDbTypes } from './column-types.ts'
import { toDuckDbError } from './duckdb-errors.ts'
import { openDuckDb } from './open-duckdb.ts'
import { readRows, streamRows } from './read-rows.ts'
import { readExactly } from './read-exactly.ts'
import { createTurns } from '../../storage/keyed-mutex.ts'

/** A database file in a folder: `warehouse.duckdb`, and `warehouse-test.duckdb` for test data. */
export const createDuckDbDestination = (options: { folder: string }): Warehouse =>
  createWarehouse(createDuckDbEngine(options))

/** DuckDB lets one process write, and to two instances in one process it would do harm. */
const turns = createTurns()

function createDuckDbEngine({ folder }: { folder: string }): WarehouseEngine {
  const locate = ({ testMode }: Pick<Scope, 'testMode'>) =>
    resolve(folder, testMode ? 'warehouse-test.duckdb' : 'warehouse.duckdb')
  return {
    name: 'duckdb',
    locate,
    // It lies in the data folder, which may be moved, and so do the watermarks.
    placeOf: ({ testMode }) => (testMode ? 'test' : 'live'),
    async transaction(scope, work) {
      const path = locate(scope)
      if (scope.readOnly !== true) await mkdir(dirname(path), { recursive: true })
      else if (!(await stat(path).catch(() => undefined)))
        throw new WarehouseRefusedError(`There is no warehouse ${path}.`)
      return turns.take(path, () => transact({ path, scope, work }))
    },
  }
}

async function transact<T>(options: {
  path: string
  scope: Scope
  work: (session: WarehouseSession) => Promise<T>
}): Promise<T> {
  const { path, work } = options
  const { signal, readOnly = false } = options.scope
  signal?.throwIfAborted()
  const beside = temporaryName(path)
  const translate = (error: unknown) => toDuckDbError(error, { path, readOnly })
  const database = await openDuckDb({ path, readOnly }).catch((error: unknown) => {
    throw translate(error)
  })
  const { connection } = database
  const interrupt = () => connection.interrupt()
  try {
    // The file is ours from here on: what lies beside it was left by a crash. Readers there may be several.
    if (!readOnly) await removeTemporaries(path)
    await database.spillTo(join(beside, 'spill'))
    // A table has no order; without one DuckDB writes it on all threads and in less memory.
    await connection.run('set preserve_insertion_order = false')
    signal?.addEventListener('abort', interrupt)
    const session = createSession(connection, beside)
    const result = await work(session)
    signal?.removeEventListener('abort', interrupt)
    await session.commit()
    return result
  } catch (error) {
    // Closing without a commit takes everything back.
    signal?.throwIfAborted()
    throw translate(error)
  } finally {
    signal?.removeEventListener('abort', interrupt)
    database.close()
    await rm(beside, { recursive: true, force: true })
  }
}

function createSession(
  connection: DuckDBConnection,
  folder: string,
): WarehouseSession & { commit(): Promise<void> } {
  let begun = false
  return {
    typeSystem: duckDbTypes,
    schema: 'main',
    run: async (sql) => (await connection.run(sql)).rowsChanged,
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
    stage: (staging) =>
      readExactly({
        ...staging,
        has: staging.types,
        connection,
        folder,
        take: (query) =>
          connection.run(
            `create or replace temporary table ${stagedName(staging.table.table.name)} as ${query}`,
          ),
      }),
    // The file has one writer, and that is us. What is staged before is the session's own.
    async lock() {
      if (!begun) await connection.run('begin')
      begun = true
    },
    // DuckDB reads the text of a view anew each time, and knows no rights.
    othersViews: () => Promise.resolve([]),
    grantsOn: () => Promise.resolve([]),
    async commit() {
      if (begun) await connection.run('commit')
    },
  }
}
