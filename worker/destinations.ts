import { createCsvDestination } from '../core/destinations/files/csv.ts'
import type { Destination, Warehouse } from '../core/destinations/destination.ts'
import {
  fileDestinationNames,
  warehouseNames,
  type FileDestinationName,
  type WarehouseName,
} from '../core/destinations/names.ts'
import type { Settings } from './settings/settings.ts'

type Places = Pick<Settings, 'dataDir' | 'warehouseUrl'>

const fileDestinations: Readonly<Record<FileDestinationName, () => Promise<Destination>>> = {
  csv: () => Promise.resolve(createCsvDestination()),
  parquet: async () => (await import('../core/destinations/files/parquet.ts')).createParquetDestination(),
}

/** How to open each warehouse; undefined if a required setting is missing. */
export const warehouses: Readonly<
  Record<WarehouseName, (places: Places) => (() => Promise<Warehouse>) | undefined>
> = {
  duckdb:
    ({ dataDir }) =>
    async () => {
      const { createDuckDbDestination } = await import('../core/destinations/duckdb/duckdb.ts')
      return createDuckDbDestination({ folder: dataDir })
    },
  postgres: ({ warehouseUrl: url }) =>
    url === undefined
      ? undefined
      : async () => {
          const { createPostgresDestination } = await import('../core/destinations/postgres/postgres.ts')
          return createPostgresDestination({ url })
        },
}

/**
 * The destinations of this worker. Engines load on first use: DuckDB alone takes tens of megabytes, which a
 * worker that writes CSV needs only to check references.
 */
export function createDestinations(places: Places): ReadonlyMap<string, Destination> {
  const files = fileDestinationNames.map((name): Destination => {
    const open = once(fileDestinations[name])
    return { name, publish: async (publication) => (await open()).publish(publication) }
  })
  const opened = warehouseNames.flatMap((name): Destination[] => {
    const load = warehouses[name](places)
    if (load === undefined) return []
    const open = once(load)
    return [
      {
        name,
        publish: async (publication) => (await open()).publish(publication),
        placeOf: async (scope) => (await open()).placeOf(scope),
        checkBeforeRead: async (scope, of) => (await open()).checkBeforeRead(scope, of),
        coveredThrough: async (scope, view) => (await open()).coveredThrough(scope, view),
      },
    ]
  })
  return new Map([...files, ...opened].map((destination) => [destination.name, destination]))
}

function once<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined
  return () => (loaded ??= load())
}
