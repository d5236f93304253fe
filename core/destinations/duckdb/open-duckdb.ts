import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { mkdir } from 'node:fs/promises'
import { literal } from '../warehouse/sql.ts'

export interface OpenDuckDb {
  connection: DuckDBConnection
  /** Creates the folder for data that does not fit in memory. */
  spillTo(folder: string): Promise<void>
  close(): void
}

/**
 * Two threads, because the smallest supported machine has two cores; no extension is downloaded. Reading
 * customers needs 90 MB; the process takes little more than the limit, because the allocator returns at once
 * what is freed. 1,000,000 customers spill and take no more CPU than at 192 MB (docs/benchmarks.md).
 */
const settings = {
  memory_limit: '128MB',
  threads: '2',
  autoinstall_known_extensions: 'false',
  allocator_background_threads: 'true',
  allocator_flush_threshold: '16MB',
  allocator_bulk_deallocation_flush_threshold: '16MB',
}

/**
 * Opens a database file, or one in memory. Memory is limited, so large work needs a folder to spill to
 * (`spillTo`). Create it only once the file is locked: until then, files beside it may be another process's.
 *
 * Instances come from a cache, because DuckDB's lock is per process: a second instance in the same process
 * would also get the file, and destroy it. Closing the instance also closes its connections for the same
 * reason; an open one would keep the file.
 */
export async function openDuckDb(options: {
  path: string | undefined
  readOnly?: boolean
}): Promise<OpenDuckDb> {
  const { path, readOnly = false } = options
  const instance =
    path === undefined
      ? await DuckDBInstance.create(':memory:', settings)
      : await DuckDBInstance.fromCache(path, { ...settings, ...(readOnly && { access_mode: 'READ_ONLY' }) })
  const connection = await instance.connect()
  return {
    connection,
    async spillTo(folder) {
      // DuckDB does not create parent folders and would fail only at the first spilled bytes.
      await mkdir(folder, { recursive: true })
      await connection.run(`set temp_directory = ${literal(folder)}`)
    },
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
