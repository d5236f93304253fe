import { DuckDBInstance } from '@duckdb/node-api'
import { mkdir, rm } from 'node:fs/promises'
import { Session } from 'node:inspector/promises'
import { join, resolve } from 'node:path'
import { getHeapStatistics } from 'node:v8'
import { removeTemporaries } from '../../storage/durable.ts'
import type { PartFile } from '../destination.ts'
import { literal } from '../layout.ts'
import type { Row } from '../warehouse/tables.ts'
import { isSystemError } from '../../storage/system-errors.ts'
import { WarehouseAwayError, ChangedTableError, UnwritableError, WarehouseRefusedError } from '../errors.ts'

/** An open database. */
export interface DuckDb {
  /** Returns how many rows the statement wrote or changed; unspecified for several statements. */
  run(sql: string): Promise<number>
  all(sql: string): Promise<Row[]>
  /** The cells of each row of a query, of texts alone, as they come. */
  stream(sql: string): AsyncIterable<(string | null)[]>
}

interface Opening {
  /** The database file; undefined for a database in memory. */
  path: string | undefined
  readOnly?: boolean
  /** In MB: one of `memoryLimits`, or more for long rows. */
  memory: number
  /**
   * A folder for what does not fit in memory. It is created once the file is locked, and removed at the end. Undefined for
   * work that only streams.
   */
  beside: string | undefined
  signal?: AbortSignal | undefined
}

/**
 * Two threads: with one, publishing 1,000,000 customers takes 1.7 times as long and saves no memory; more would each
 * hold rows until it has 122,880 of them. No extension is downloaded.
 */
const settings = {
  threads: '2',
  // Tables have no order; keeping one takes more memory.
  preserve_insertion_order: 'false',
  // Its allocator keeps what was freed until it is this much; by default 512 MB, more than it may use at all.
  allocator_bulk_deallocation_flush_threshold: '8MB',
  // Gives memory back while it works, too: 476 instead of 504 to 532 MB for a worker that exports 1,000,000 customers.
  allocator_background_threads: 'true',
  autoinstall_known_extensions: 'false',
}

/** DuckDB's own limit by kind of work, in MB, from runs with 1,000,000 customers; the process takes some 100 MB more. */
export const memoryLimits = {
  /** Publishing them. With less, they do not fit. */
  publish: 128,
  /** Comparing two exports of which a tenth changed. */
  compare: 96,
  /** A command of its own that meets more changes, or rows of megabytes. */
  most: 1_000,
}

/** The memory for publishing these parts: each thread holds several buffers of the longest row. */
export const memoryFor = (parts: readonly PartFile[]): number =>
  memoryLimits.publish + Math.ceil((8 * longestRow(parts)) / 1_000_000)

/** The most bytes that a row of these parts may have. */
export const longestRow = (parts: readonly PartFile[]): number =>
  parts.reduce((most, { longest }) => Math.max(most, longest), 0)

/**
 * Opens a database for some work and closes it; what is in a transaction and not committed by then is rolled back. The
 * signal interrupts a statement, except while it commits.
 *
 * Instances come from a cache, because DuckDB's lock is per process: a second instance in the same process would also get
 * the file, and destroy it. Closing the instance also closes its connections for the same reason; an open one would keep
 * the file.
 */
export async function withDuckDb<T>(opening: Opening, work: (db: DuckDb) => Promise<T>): Promise<T> {
  const { path, readOnly = false, memory, beside, signal } = opening
  signal?.throwIfAborted()
  if (!readOnly) await releaseMemory()
  const config = { ...settings, memory_limit: `${memory}MB` }
  const instance =
    path === undefined
      ? await DuckDBInstance.create(':memory:', config)
      : await DuckDBInstance.fromCache(path, { ...config, ...(readOnly && { access_mode: 'READ_ONLY' }) })
  const connection = await instance.connect()
  let isCommitting = false
  const interrupt = () => {
    if (!isCommitting) connection.interrupt()
  }
  signal?.addEventListener('abort', interrupt)
  try {
    // The file is locked by us, so temporaries beside it were left by a crash. Readers do not remove them: there may be
    // several.
    if (path !== undefined && !readOnly) await removeTemporaries(path)
    const spill = beside === undefined ? '' : join(beside, 'spill')
    // DuckDB does not create parent folders and would fail only at the first spilled bytes.
    if (spill !== '') await mkdir(spill, { recursive: true })
    await connection.run(`set temp_directory = ${literal(spill)}`)
    return await work({
      async run(sql) {
        isCommitting = sql === 'commit'
        // Between two statements, there was none to interrupt.
        if (!isCommitting) signal?.throwIfAborted()
        // `rowsChanged` is 0 for `create table ... as`; the result itself has the number.
        return Number((await (await connection.run(sql)).getRows())[0]?.[0] ?? 0)
      },
      async all(sql) {
        signal?.throwIfAborted()
        const reader = await connection.runAndReadAll(sql)
        return reader.getRowObjectsJson().map(toTexts)
      },
      async *stream(sql) {
        const result = await connection.stream(sql)
        for await (const rows of result.yieldRowsJson()) yield* rows as (string | null)[][]
      },
    })
  } finally {
    signal?.removeEventListener('abort', interrupt)
    connection.closeSync()
    instance.closeSync()
    if (beside !== undefined) await rm(beside, { recursive: true, force: true })
  }
}

/** What V8 held when it last gave memory back, in bytes. */
let kept = 0

const heldByV8 = () => {
  const { total_heap_size, external_memory } = getHeapStatistics()
  return total_heap_size + external_memory
}

/**
 * Returns what a read left as garbage to the system before DuckDB takes memory outside V8's heap: 402 MB instead of
 * 476 for a worker that exports 1,000,000 customers. V8 would keep it, since a worker is never idle for long. Looking for it
 * stops the process for 40 ms and more, so a little is left.
 */
async function releaseMemory(): Promise<void> {
  if (heldByV8() - kept < 32_000_000) return
  const session = new Session()
  session.connect()
  await session.post('HeapProfiler.collectGarbage')
  session.disconnect()
  kept = heldByV8()
}

/** Numbers and booleans arrive as such; numbers that JSON cannot represent arrive as text. */
const toTexts = (row: Record<string, unknown>): Row =>
  Object.fromEntries(
    Object.entries(row).map(([name, value]) => [
      name,
      value === null || typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  )

/**
 * SQL for the path of a file that is read: DuckDB takes it for a pattern, so what is special in one is put in brackets, a
 * backslash in a range that holds it. Should the pattern find another file, too, there are more rows than were read.
 */
export const toPath = (path: string): string =>
  literal(resolve(path).replaceAll(/[*?[\]{}\\]/g, (one) => (one === '\\' ? '[Z-^]' : `[${one}]`)))

const tooLong = (path: string) =>
  `${path} can't take these rows in the memory that DuckDB has: one of them may be too long. Leave the field out` +
  ' (--exclude), and run the export again.'

/** Maps a DuckDB error to a publication error; returns other errors unchanged. */
export function toDuckDbError(
  error: unknown,
  place: { path: string; readOnly?: boolean; undone?: string; ofMemory?: string },
): unknown {
  const { path, readOnly = false, undone, ofMemory = tooLong(path) } = place
  const again = readOnly ? 'try again' : 'publish the run again'
  if (isSystemError(error)) return new UnwritableError({ where: path, cause: error, undone })
  if (!(error instanceof Error) || error.name !== 'Error') return error
  const [said = ''] = error.message.split('\n')
  if (/Could not set lock|Conflicting lock|already open/i.test(said)) {
    const holder = /held in (.*? \(PID \d+\))/.exec(error.message)?.[1]
    return new WarehouseAwayError(
      `${path} is held by another process${holder === undefined ? '' : `: ${holder}`}. DuckDB lets in one at a` +
        ` time: end it, and ${again}.`,
      { cause: error },
    )
  }
  const code = systemCode(said)
  if (code !== undefined)
    return new UnwritableError({ where: path, cause: Object.assign(new Error(said), { code }), undone })
  if (/not a valid DuckDB|serialization|version number/i.test(said))
    return new WarehouseRefusedError(
      `${path} is not a database that this version of DuckDB reads (${said}). Move it away, and ${again}.`,
      { cause: error },
    )
  if (said.startsWith('Out of Memory Error')) return new WarehouseRefusedError(ofMemory, { cause: error })
  if (/^(Constraint|Conversion|Invalid Input|Out of Range) Error/.test(said))
    // DuckDB's messages for these contain a value.
    return new ChangedTableError(
      `Rows can't be merged into ${path}: a rule or a type of its tables keeps one out (${said.split(':')[0]}). Nothing was written: change back what was changed.`,
    )
  if (/^(Dependency|Catalog|Binder) Error/.test(said))
    return new ChangedTableError(
      `Rows can't be merged into ${path}: someone changed its tables (${said}). Nothing was written: change them back.`,
      { cause: error },
    )
  return error
}

/** The system error code in a DuckDB message. */
function systemCode(said: string): string | undefined {
  if (!/^IO Error|Failed to commit|Could not write|FATAL Error/.test(said)) return undefined
  const [, code] = systemWords.find(([words]) => words.test(said)) ?? []
  return code
}

const systemWords: readonly [RegExp, string][] = [
  [/No space left/i, 'ENOSPC'],
  [/File too large/i, 'EFBIG'],
  [/Read-only file system/i, 'EROFS'],
  [/Permission denied/i, 'EACCES'],
  [/Disk quota/i, 'EDQUOT'],
]
