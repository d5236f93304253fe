import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { literal } from '../warehouse/sql.ts'

export interface OpenDuckDb {
  connection: DuckDBConnection
  close(): void
}

/** As many threads as the smallest machine we promise has cores, and nothing is fetched from anywhere. */
const settings = { memory_limit: '512MB', threads: '2', autoinstall_known_extensions: 'false' }

/**
 * Opens a database file, or one in memory. It takes little memory; what does not fit is kept in `spill` meanwhile.
 *
 * The files come from a cache, because DuckDB's lock is the process's: a second instance in it would get the file
 * too, and destroy it. Connections are closed with the instance for the same reason; one left open keeps the file.
 */
export async function openDuckDb(options: {
  path: string | undefined
  spill: string
  readOnly?: boolean
}): Promise<OpenDuckDb> {
  const { path, spill, readOnly = false } = options
  const instance =
    path === undefined
      ? await DuckDBInstance.create(':memory:', settings)
      : await DuckDBInstance.fromCache(path, { ...settings, ...(readOnly && { access_mode: 'READ_ONLY' }) })
  const connection = await instance.connect()
  await connection.run(`set temp_directory = ${literal(spill)}`)
  return {
    connection,
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
