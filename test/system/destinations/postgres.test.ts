import { afterAll, beforeAll } from 'vitest'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import { describeDestination } from '../../core/destinations/contract.ts'
import { askPostgres, startPostgres, type Postgres } from './postgres-server.ts'
import { describeWarehouse } from '../../core/destinations/warehouse.ts'
import { asTexts, byKey, withoutScale } from '../../core/destinations/warehouse-rows.ts'

let postgres: Postgres
beforeAll(async () => {
  postgres = await startPostgres()
})
afterAll(() => postgres.close())

describeDestination('postgres', async () => {
  const url = await postgres.createDatabase()
  return {
    destination: createPostgresDestination({ url }),
    async rows({ testMode, tables }, name) {
      const table = tables.find((table) => table.name === name)!
      const schema = testMode ? 'billing_test' : 'billing'
      const rows = await askPostgres(
        url,
        `select ${asTexts(table)} from ${schema}."${name}" t order by ${byKey(table)}`,
      )
      return withoutScale(table, rows)
    },
    close: async () => {},
  }
})

describeWarehouse('postgres', async () => {
  const url = await postgres.createDatabase()
  return {
    destination: createPostgresDestination({ url }),
    schema: 'billing',
    ask: (sql) => askPostgres(url, sql),
    close: async () => {},
  }
})
