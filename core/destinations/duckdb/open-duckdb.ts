import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { mkdir } from 'node:fs/promises'
import { literal } from '../warehouse/sql.ts'

export interface OpenDuckDb {
  connection: DuckDBConnection
  /** Makes the folder in which it keeps what does not fit in its memory. */
  spillTo(folder: string): Promise<void>
  close(): void
}

/**
 * As many threads as the smallest machine we promise has cores, and nothing is fetched from anywhere. The memory is
 * what 100,000 customers need: with it 1,000,000 take little more of the process and no longer than with 512 MB, which
 * they would fill (docs/benchmarks.md); with 160 MB they take twice the time.
 */
const settings = { memory_limit: '192MB', threads: '2', autoinstall_known_extensions: 'false' }

/**
 * Opens a database file, or one in memory. It takes little memory, and needs a folder for what does not fit (`spillTo`):
 * one that is made when the file is ours, because until then what lies beside it may be another's.
 *
 * The files come from a cache, because DuckDB's lock is the process's: a second instance in it would get the file
 * too, and destroy it. Connections are closed with the instance for the same reason; one left open keeps the file.
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
      // It makes no parents, and would fail only when the first bytes have to go there.
      await mkdir(folder, { recursive: true })
      await connection.run(`set temp_directory = ${literal(folder)}`)
    },
    close() {
      connection.closeSync()
      instance.closeSync()
    },
  }
}
