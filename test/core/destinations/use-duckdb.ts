import { constants } from 'node:fs'
import { copyFile, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, beforeAll } from 'vitest'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { askDuckDb } from './duckdb-file.ts'
import type { Workplace } from './publication.ts'
import type { WarehouseHarness } from './use-warehouse.ts'

/** Opens DuckDB warehouses for the tests of a file. */
export function useDuckDb(): (workplace: Workplace) => Promise<WarehouseHarness> {
  /** The warehouses that first publications left, by their key. */
  const published = new Map<string, string>()
  let copies: string
  beforeAll(async () => {
    copies = await mkdtemp(join(tmpdir(), 'warehouses-'))
  })
  afterAll(() => rm(copies, { recursive: true }))

  return async ({ folder }) => {
    const path = join(folder, 'warehouse.duckdb')
    return {
      destination: createDuckDbDestination({ folder }),
      schema: 'main',
      async once(key, publish) {
        const copy = published.get(key)
        // A warehouse that is there already makes the test fail: this was not its first publication.
        if (copy !== undefined) return copyFile(copy, path, constants.COPYFILE_EXCL)
        await publish()
        const made = join(copies, `${published.size}.duckdb`)
        await copyFile(path, made)
        published.set(key, made)
      },
      ask: (sql) => askDuckDb(path, sql),
      close: async () => {},
    }
  }
}
