import { DuckDBInstance, type DuckDBConnection } from '@duckdb/node-api'
import { mkdir } from 'node:fs/promises'
import { literal } from '../sql.ts'

export interface OpenDuckDb {
  connection: DuckDBConnection
  /** Creates the folder for data that does not fit in memory. */
  spillTo(folder: string): Promise<void>
  close(): void
}

/**
 * The memory that DuckDB may be given. The process takes some 100 MB more than the limit. Long rows may need the most:
 * 1,000 records of 100 kB more than 128 MB.
 */
const memoryLimits = ['96MB', '128MB', '256MB', '1GB'] as const
export type MemoryLimit = (typeof memoryLimits)[number]

/**
 * Runs work that opens and closes a database, and again from its beginning with more memory where its memory does not
 * suffice.
 * @param least what suffices for 1,000,000 rows of the usual size
 */
export async function withEnoughMemory<T>(
  least: MemoryLimit,
  work: (limit: MemoryLimit) => Promise<T>,
): Promise<T> {
  try {
    return await work(least)
  } catch (error) {
    const more = memoryLimits[memoryLimits.indexOf(least) + 1]
    if (more === undefined || !isOutOfMemory(error)) throw error
    return withEnoughMemory(more, work)
  }
}

export const isOutOfMemory = (error: unknown): boolean =>
  error instanceof Error && error.message.startsWith('Out of Memory Error')

/**
 * Two threads: with one, publishing 1,000,000 customers takes twice as long, the same CPU and some 60 MB less; more would
 * each hold rows until it has 122,880 of them. No extension is downloaded.
 */
const settings = {
  threads: '2',
  // Tables have no order; keeping one takes more memory.
  preserve_insertion_order: 'false',
  // Its allocator keeps what was freed until it is this much; by default 512 MB, more than it may use at all.
  allocator_bulk_deallocation_flush_threshold: '8MB',
  autoinstall_known_extensions: 'false',
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
  memoryLimit: MemoryLimit
  readOnly?: boolean
}): Promise<OpenDuckDb> {
  const { path, memoryLimit, readOnly = false } = options
  const config = { ...settings, memory_limit: memoryLimit }
  const instance =
    path === undefined
      ? await DuckDBInstance.create(':memory:', config)
      : await DuckDBInstance.fromCache(path, { ...config, ...(readOnly && { access_mode: 'READ_ONLY' }) })
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
