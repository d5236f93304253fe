import { mkdir, stat } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { temporaryName } from '../../storage/durable.ts'
import { createKeyedMutex } from '../../storage/keyed-mutex.ts'
import { checkPrivacy } from '../admission.ts'
import type { Publication, Warehouse } from '../destination.ts'
import { WarehouseRefusedError } from '../errors.ts'
import { checkTables } from '../parts/read-parts.ts'
import { toDuckDbError } from './errors.ts'
import { lastExports, lookBack } from './exports.ts'
import { type DuckDb, leastMemory, memoryFor, withDuckDb } from './open.ts'
import { publishTo } from './publish.ts'
import { describe } from './tables.ts'
import { compareExport, comparingMemory } from './compare.ts'

type Scope = Pick<Publication, 'testMode' | 'signal'>

/** DuckDB allows one writing process, and two instances in one process would corrupt the file. */
const mutex = createKeyedMutex()

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

  async function read<T>(scope: Scope, work: (db: DuckDb) => Promise<T>, memory = leastMemory): Promise<T> {
    const path = locate(scope)
    if ((await stat(path).catch(() => undefined)) === undefined)
      throw new WarehouseRefusedError(`There is no warehouse ${path}.`)
    return await withFile({ scope, memory, readOnly: true }, work)
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
        { scope: publication, memory: memoryFor(publication.parts, leastMemory), readOnly: false },
        (db) => publishTo(db, { publication, where: path }),
      )
      publication.onStep?.('visible')
      return { ...published, location: path }
    },
    coveredThrough: (scope, of) => read(scope, async (db) => (await lookBack(db, of)).through),
    checkPrivacy: (scope, of) =>
      read(scope, async (db) => {
        if (!(await describe(db)).has('_exports')) return
        const published = await lastExports(db)
        for (const privacy of of) checkPrivacy({ published, privacy, where: locate(scope) })
      }),
    async compare({ manifest, folder, signal }) {
      const where = locate(manifest)
      const scope = { testMode: manifest.testMode, ...(signal && { signal }) }
      return await read(scope, (db) => compareExport(db, { manifest, folder, where }), comparingMemory)
    },
  }
}
