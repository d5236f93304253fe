import { Client, DatabaseError } from 'pg'
import { afterAll, beforeAll } from 'vitest'
import type { Warehouse } from '../../../core/destinations/destination.ts'
import { createPostgresDestination } from '../../../core/destinations/postgres/postgres.ts'
import type { SeenRow } from '../../core/destinations/contract.ts'
import type { WarehouseHarness } from '../../core/destinations/use-warehouse.ts'
import { toSeen } from '../../core/destinations/warehouse-rows.ts'
import { startPostgres, type Postgres } from './postgres-server.ts'

/** A warehouse in PostgreSQL, with a schema of its own for live data and another for test data. */
export interface PostgresHarness extends WarehouseHarness {
  testSchema: string
}

/**
 * Opens PostgreSQL warehouses for the tests of a file. All lie in one database and are asked over one connection: a
 * database for each test and a connection for each question take half of the tests' time.
 */
export function usePostgres(): () => Promise<PostgresHarness> {
  let postgres: Postgres
  let client: Client
  let destination: Warehouse
  let opened = 0
  beforeAll(async () => {
    postgres = await startPostgres()
    const url = await postgres.createDatabase()
    destination = createPostgresDestination({ url })
    client = new Client({ connectionString: url })
    await client.connect()
  })
  afterAll(async () => {
    await client.end()
    await postgres.close()
  })
  async function ask(sql: string): Promise<SeenRow[] | undefined> {
    try {
      const { rows } = await client.query<Record<string, unknown>>(sql)
      return rows.map(toSeen)
    } catch (error) {
      if (error instanceof DatabaseError && ['42P01', '3F000'].includes(error.code ?? '')) return undefined
      throw error
    }
  }
  return () => {
    opened += 1
    const schema = `billing_${opened}`
    const testSchema = `${schema}_test`
    const named = <T extends { testMode: boolean }>(scope: T) => ({
      ...scope,
      schema: scope.testMode ? testSchema : schema,
    })
    return Promise.resolve({
      destination: {
        ...destination,
        publish: (publication) => destination.publish(named(publication)),
        checkBeforeRead: (scope, of) => destination.checkBeforeRead(named(scope), of),
        coveredThrough: (scope, of) => destination.coveredThrough(named(scope), of),
        compare: (of) => destination.compare({ ...of, schema }),
      },
      schema,
      testSchema,
      ask,
      close: () => Promise.resolve(),
    })
  }
}
