import { join } from 'node:path'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { askDuckDb } from './duckdb-file.ts'
import { describeWarehouse } from './warehouse.ts'

// A file of its own, so that it runs beside duckdb.test.ts: together they are the longest of the unit tests.
describeWarehouse('duckdb', async ({ folder }) => {
  const path = join(folder, 'warehouse.duckdb')
  return {
    destination: createDuckDbDestination({ folder }),
    schema: 'main',
    oldTypes: [['aggregations_sales', 'DECIMAL(38,18)']],
    ask: (sql) => askDuckDb(path, sql),
    close: async () => {},
  }
})
