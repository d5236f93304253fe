import { join } from 'node:path'
import { createDuckDbDestination } from '../../../core/destinations/duckdb/duckdb.ts'
import { describeDestination } from './contract.ts'
import { askDuckDb } from './duckdb-file.ts'
import { asTexts, byKey, withoutScale } from './warehouse-rows.ts'

describeDestination('duckdb', async ({ folder }) => ({
  destination: createDuckDbDestination({ folder }),
  async rows({ testMode, tables }, name) {
    const table = tables.find((table) => table.name === name)!
    const path = join(folder, testMode ? 'warehouse-test.duckdb' : 'warehouse.duckdb')
    const rows = await askDuckDb(path, `select ${asTexts(table)} from "${name}" t order by ${byKey(table)}`)
    return withoutScale(table, rows)
  },
  async remove(_, table) {
    const path = join(folder, 'warehouse.duckdb')
    await askDuckDb(path, `drop view live_${table}`)
    await askDuckDb(path, `drop table ${table}`)
  },
  close: async () => {},
}))
