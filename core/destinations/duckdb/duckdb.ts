import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { temporaryName } from '../../storage/durable.ts'
import { createKeyedMutex } from '../../storage/keyed-mutex.ts'
import type { Publication, Warehouse } from '../destination.ts'
import { repeatedRow, WarehouseRefusedError } from '../errors.ts'
import {
  idOf,
  instant,
  literal,
  quote,
  stagedName,
  toWarehouseTable,
  type WarehouseTable,
} from '../layout.ts'
import { checkTables } from '../parts.ts'
import { checkBeforeRead } from '../warehouse/admission.ts'
import { compareExport } from '../warehouse/compare.ts'
import { coverageOf } from '../warehouse/coverage.ts'
import { readWithin, selectCells } from '../files/cells.ts'
import { publishTo } from '../warehouse/publish.ts'
import { type Database, toTables } from '../warehouse/tables.ts'
import { toDuckDbError, type DuckDb, memoryFor, memoryLimits, withDuckDb } from './open.ts'
import { readRows, toQuery, types, withDrift } from './rows.ts'

type Scope = Pick<Publication, 'testMode' | 'signal'>

/** DuckDB allows one writing process, and two instances in one process would corrupt the file. */
const mutex = createKeyedMutex()

const typeOf: Database['typeOf'] = ({ kind }) => types[kind]

const toDatabase = (db: DuckDb, where: string): Database => ({
  name: 'duckdb',
  where,
  certificates: 'duckdb',
  instead: 'move the file away',
  // The file is locked.
  isShared: false,
  nameOf: quote,
  run: (sql) => db.run(sql),
  all: (sql) => db.all(sql),
  async describe() {
    const rows = await db.all(`select table_name, column_name, data_type from duckdb_columns()
      where database_name = current_database() and schema_name = 'main' and not internal
      order by table_name, column_index`)
    return toTables(rows)
  },
  typeOf,
  createTable: ({ name }, columns) =>
    `create table ${quote(name)} (${columns.map((column) => `${quote(column.name)} ${typeOf(column)}`).join(', ')})`,
  async stage({ parts, facts, signal }, tables) {
    const rows = new Map<string, number>()
    const drift = []
    for (const table of tables) {
      const written = stagedName(table.table.name)
      const write = (query: string) => db.run(`create or replace temporary table ${written} as ${query}`)
      const read = await readRows({ db, table, parts, write, written, where, signal })
      rows.set(table.table.name, read.rows)
      drift.push(read.drift)
    }
    return { rows, facts: withDrift(facts, drift) }
  },
  lock: async () => void (await db.run('begin')),
  valueOf: ({ name }) => `s.${quote(name)}`,
  async replace({ run, facts }, tables) {
    const [main] = tables as [WarehouseTable]
    const staged = stagedName(main.table.name)
    // Without a key, nothing else would refuse them.
    const repeated = await db.all(
      `select 1 from ${staged} group by ${idOf(main)} having count(*) > 1 limit 1`,
    )
    if (repeated.length > 0) throw repeatedRow(main.table.name)
    for (const table of tables) {
      const target = quote(table.table.name)
      await db.run(`delete from ${target} where ${idOf(table)} in (select ${idOf(main)} from ${staged})`)
      await db.run(`insert into ${target} by name select *, ${literal(run)} as _run_id,
        ${instant(facts.startedAt)} as _read_at from ${stagedName(table.table.name)}`)
    }
  },
})

/** Destination for a DuckDB database file: `warehouse.duckdb`, or `warehouse-test.duckdb` for test data. */
export function createDuckDbDestination({ folder }: { folder: string }): Warehouse {
  const locate = ({ testMode }: Pick<Scope, 'testMode'>) =>
    resolve(folder, testMode ? 'warehouse-test.duckdb' : 'warehouse.duckdb')

  function withFile<T>(
    options: { scope: Scope; memory: number; readOnly: boolean },
    work: (db: DuckDb) => Promise<T>,
  ): Promise<T> {
    const { scope, memory, readOnly } = options
    const { signal } = scope
    const path = locate(scope)
    const beside = temporaryName(path)
    return mutex.runExclusive(path, () =>
      withDuckDb({ path, memory, readOnly, beside, signal }, work).catch((error: unknown) => {
        signal?.throwIfAborted()
        throw toDuckDbError(error, { path, readOnly })
      }),
    )
  }

  async function read<T>(
    scope: Scope,
    work: (database: Database, db: DuckDb) => Promise<T>,
    memory: number = memoryLimits.publish,
  ): Promise<T> {
    const path = locate(scope)
    if ((await stat(path).catch(() => undefined)) === undefined)
      throw new WarehouseRefusedError(`There is no warehouse ${path}.`)
    return await withFile({ scope, memory, readOnly: true }, (db) => work(toDatabase(db, path), db))
  }

  return {
    name: 'duckdb',
    // No path: the file is in the data folder, which may be moved together with its watermarks.
    placeOf: ({ testMode }) => Promise.resolve(testMode ? 'test' : 'live'),
    async publish(publication) {
      publication.signal?.throwIfAborted()
      checkTables(publication)
      const path = locate(publication)
      await mkdir(dirname(path), { recursive: true })
      const published = await withFile(
        { scope: publication, memory: memoryFor(publication.parts), readOnly: false },
        async (db) => {
          const done = await publishTo(toDatabase(db, path), publication)
          await db.run('commit')
          return done
        },
      )
      publication.onStep?.('visible')
      return { ...published, location: path }
    },
    coveredThrough: (scope, of) => read(scope, (db) => coverageOf(db, of)),
    checkBeforeRead: (scope, of) => read(scope, (db) => checkBeforeRead(db, of)),
    async compare({ manifest, folder, signal }) {
      const scope = { testMode: manifest.testMode, ...(signal && { signal }) }
      return await read(
        scope,
        (database, db) =>
          compareExport(database, manifest, async (table) => {
            const exported = stagedName(table.name)
            await readWithin(memoryLimits.most, async ({ size }) => {
              const rows = toQuery(
                toWarehouseTable(table),
                await selectCells({ folder, manifest, table, size }),
              )
              await db.run(`create or replace temporary table ${exported} as ${rows}`)
            })
            return exported
          }),
        memoryLimits.most,
      )
    },
  }
}
