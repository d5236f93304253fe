import { createCsvDestination } from '../core/destinations/csv/csv.ts'
import type { Destination } from '../core/destinations/destination.ts'
import type { Warehouse } from '../core/destinations/warehouse/publish.ts'
import type { Settings } from './settings/settings.ts'

/**
 * Where this worker can publish. A destination's engine is loaded when something is first published there: DuckDB
 * alone takes tens of megabytes that a worker which writes CSV never needs.
 */
export function createDestinations({ dataDir, warehouseUrl }: Settings): ReadonlyMap<string, Destination> {
  const destinations: Destination[] = [
    createCsvDestination(),
    whenUsed('parquet', async () =>
      (await import('../core/destinations/parquet/parquet.ts')).createParquetDestination(),
    ),
    warehouseWhenUsed('duckdb', async () => {
      const { createDuckDbDestination } = await import('../core/destinations/duckdb/duckdb.ts')
      return createDuckDbDestination({ folder: dataDir })
    }),
  ]
  if (warehouseUrl !== undefined) {
    destinations.push(
      warehouseWhenUsed('postgres', async () => {
        const { createPostgresDestination } = await import('../core/destinations/postgres/postgres.ts')
        return createPostgresDestination({ url: warehouseUrl })
      }),
    )
  }
  return new Map(destinations.map((one) => [one.name, one]))
}

function whenUsed(name: Destination['name'], load: () => Promise<Destination>): Destination {
  const open = once(load)
  return { name, publish: async (publication) => (await open()).publish(publication) }
}

function warehouseWhenUsed(name: Destination['name'], load: () => Promise<Warehouse>): Destination {
  const open = once(load)
  return {
    name,
    publish: async (publication) => (await open()).publish(publication),
    placeOf: async (scope) => (await open()).placeOf(scope),
    coveredThrough: async (scope, of) => (await open()).coveredThrough(scope, of),
  }
}

function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined
  return () => (loaded ??= load())
}
