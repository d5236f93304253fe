import { createHash, type Hash } from 'node:crypto'
import { mkdir, open, stat, utimes, type FileHandle } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import type { PartFile } from '../../destinations/destination.ts'
import type { SharedFolder } from '../../storage/cached.ts'
import { freeBytes, orMissing } from '../../storage/system-errors.ts'

/** Rows are written in pieces of this size, large enough that the cost of the system call is negligible. */
const bufferBytes = 1 << 20
/** The most UTF-8 bytes per UTF-16 code unit of a string. */
const mostBytesEach = 3

interface OpenChunk {
  file: FileHandle
  path: string
  /** The table's own: strings waiting to be written would be moved by each garbage collection. */
  buffer: Buffer
  pending: number
  bytes: number
  rows: number
  /** The bytes of the longest text that was appended at once. */
  longest: number
  sum: Hash
}

/** The rows that one attempt at a segment reads, in chunks: a file for each table between two checkpoints. */
export interface Chunks {
  /** Buffers encoded rows of one table. */
  append(rows: { table: string; text: string; count: number }): Promise<void>
  /**
   * Closes the open files, durably, and returns them. Once a write has failed it always throws, because nobody knows
   * which bytes are on the disk.
   */
  close(): Promise<PartFile[]>
  /** The bytes since the last `close`. */
  waiting(): number
  /** Closes the files of rows that no checkpoint will name. */
  abandon(): Promise<void>
}

/** @param options.name the attempt's own, so that two attempts never share a file */
export function openChunks({ folder, name }: { folder: string; name: string }): Chunks {
  let number = 1
  const chunks = new Map<string, OpenChunk>()
  const buffers = new Map<string, Buffer>()
  const failure: { error?: unknown } = {}

  async function unlessFailed<T>(work: () => Promise<T>): Promise<T> {
    if ('error' in failure) throw failure.error
    try {
      return await work()
    } catch (error) {
      failure.error = error
      throw error
    }
  }

  async function chunkOf(table: string): Promise<OpenChunk> {
    const known = chunks.get(table)
    if (known !== undefined) return known
    await mkdir(folder, { recursive: true })
    const path = join(folder, `${table}.${name}.${String(number).padStart(5, '0')}.part`)
    const file = await open(path, 'w')
    const buffer = buffers.get(table) ?? Buffer.allocUnsafeSlow(bufferBytes)
    buffers.set(table, buffer)
    const chunk = { file, path, buffer, pending: 0, bytes: 0, rows: 0, longest: 0, sum: createHash('sha256') }
    chunks.set(table, chunk)
    return chunk
  }

  async function write(chunk: OpenChunk, bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await chunk.file.write(bytes, done)
      done += bytesWritten
    }
    chunk.sum.update(bytes)
    chunk.bytes += bytes.length
  }

  async function flush(chunk: OpenChunk): Promise<void> {
    if (chunk.pending === 0) return
    await write(chunk, chunk.buffer.subarray(0, chunk.pending))
    chunk.pending = 0
  }

  async function abandon(): Promise<void> {
    for (const { file } of chunks.values()) await file.close()
    chunks.clear()
  }

  return {
    append: ({ table, text, count }) =>
      unlessFailed(async () => {
        const chunk = await chunkOf(table)
        chunk.rows += count
        const most = text.length * mostBytesEach
        if (chunk.pending + most > bufferBytes) await flush(chunk)
        if (most > bufferBytes) await write(chunk, Buffer.from(text))
        else chunk.pending += chunk.buffer.write(text, chunk.pending)
        chunk.longest = Math.max(chunk.longest, Buffer.byteLength(text))
      }),
    close: () =>
      unlessFailed(async () => {
        for (const chunk of chunks.values()) {
          await flush(chunk)
          await chunk.file.datasync()
        }
        const parts = [...chunks].map(([table, { path, bytes, rows, longest, sum }]) => {
          return { table, path, bytes, rows, longest, sha256: sum.digest('hex') }
        })
        await abandon()
        number += 1
        return parts
      }),
    waiting: () => [...chunks.values()].reduce((sum, { bytes, pending }) => sum + bytes + pending, 0),
    abandon,
  }
}

/** The pseudo-table of what is not a valid record, published as `rejected.jsonl`. */
export const rejectedPart = 'rejected'
/** The pseudo-table of ids that do not exist, published as `missing.csv`. */
export const missingPart = 'missing'
/** The pseudo-table of the windows that a read took, published as `certificate.jsonl`. */
export const certificatePart = 'certificate'

/** Whether a part belongs to a real table of the resource. */
export const isOfTable = ({ table }: Pick<PartFile, 'table'>): boolean =>
  table !== rejectedPart && table !== missingPart && table !== certificatePart

/** Enough to keep a connection busy although each chunk is small. */
const atOnce = 4

/** Another machine may have more room. */
class ScratchFullError extends Error {
  override readonly name = 'ScratchFullError'
  readonly retryable = true
  constructor({ folder, needed, free }: { folder: string; needed: number; free: number }) {
    const inMegabytes = (bytes: number) => `${Math.ceil(bytes / 1e6)} MB`
    super(
      `The disk of ${folder} has ${inMegabytes(free)} left, and this step needs ${inMegabytes(needed)}. It is retried, ` +
        'where possible on another machine.',
    )
  }
}

/**
 * Downloads the parts that are not on this machine yet: another worker may have read them.
 *
 * @throws {ScratchFullError} there is no room for them and for what is made of them
 */
export async function fetchParts(options: {
  shared: SharedFolder
  parts: readonly PartFile[]
  signal?: AbortSignal
}): Promise<void> {
  const { shared, parts, signal } = options
  for (const folder of new Set(parts.map(({ path }) => dirname(path)))) await markUsed(folder)
  await refuseFull(parts)
  const left = parts.values()
  const fetchNext = async () => {
    for (const { path, bytes } of left) {
      signal?.throwIfAborted()
      await shared.fetch(path, { bytes, signal })
    }
  }
  await Promise.all(Array.from({ length: atOnce }, fetchNext))
}

/** Copies stay for a day: those that fill the disk would stop all other runs of this machine. */
async function refuseFull(parts: readonly PartFile[]): Promise<void> {
  const copies = await Promise.all(parts.map(({ path }) => orMissing(stat(path))))
  const there = copies.reduce((sum, copy) => sum + (copy?.size ?? 0), 0)
  const total = parts.reduce((sum, { bytes }) => sum + bytes, 0)
  const [first] = parts
  if (first === undefined || there >= total) return
  const folder = dirname(first.path)
  await mkdir(folder, { recursive: true })
  const [needed, free] = [2 * total - there, await freeBytes(folder)]
  if (free < needed) throw new ScratchFullError({ folder, needed, free })
}

/** Copies are pruned by the age of their folders, which reading them does not change. */
async function markUsed(folder: string): Promise<void> {
  const now = new Date()
  await orMissing(utimes(folder, now, now))
}
