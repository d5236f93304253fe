import { createCsvDestination } from '../destinations/csv/csv.ts'
import type { Destination } from '../destinations/destination.ts'
import type { Settings } from './settings.ts'

/**
 * Where this worker can publish. A destination's engine is loaded when something is first published there: DuckDB
 * alone takes tens of megabytes that a worker which writes CSV never needs.
 */
export function createDestinations({ dataDir, warehouseUrl }: Settings): ReadonlyMap<string, Destination> {
  const destinations: Destination[] = [
    createCsvDestination(),
    whenUsed('parquet', async () =>
      (await import('../destinations/parquet/parquet.ts')).createParquetDestination(),
    ),
    whenUsed('duckdb', async () => {
      const { createDuckDbDestination } = await import('../destinations/duckdb/duckdb.ts')
      return createDuckDbDestination({ folder: dataDir })
    }),
  ]
  if (warehouseUrl !== undefined) {
    destinations.push(
      whenUsed('postgres', async () => {
        const { createPostgresDestination } = await import('../destinations/postgres/postgres.ts')
        return createPostgresDestination({ url: warehouseUrl })
      }),
    )
  }
  return new Map(destinations.map((one) => [one.name, one]))
}

function whenUsed(name: Destination['name'], load: () => Promise<Destination>): Destination {
  let loaded: Promise<Destination> | undefined
  return {
    name,
    async publish(publication) {
      loaded ??= load()
      return (await loaded).publish(publication)
    },
  }
}
