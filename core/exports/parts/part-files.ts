import { mkdir, open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { PartFile } from '../../destinations/destination.ts'

/** Rows are handed to the file system in pieces of this size: large enough that the call costs nothing. */
const bufferBytes = 1 << 20
/** The most bytes of UTF-8 that one unit of a string's length takes. */
const mostBytesEach = 3

interface OpenPart {
  file: FileHandle
  path: string
  /** Used over and over: strings that wait to be written would be moved by each garbage collection. */
  buffer: Buffer
  pending: number
  bytes: number
  rows: number
}

export interface PartFiles {
  /** Takes encoded rows of one table; they are on disk only after the next `settle`. */
  append(rows: { table: string; text: string; count: number }): Promise<void>
  /**
   * Writes and fsyncs what was appended. What it returns counts: the files kept from before, and this attempt's own.
   * After a write that failed it always throws: what the system has of those bytes is not known.
   */
  settle(): Promise<PartFile[]>
  close(): Promise<void>
}

/**
 * The part files of one attempt at one segment. An attempt writes files of its own, so that two attempts never
 * share one: a file's bytes count only as far as a checkpoint says.
 */
export function openPartFiles(options: {
  folder: string
  name: string
  kept: readonly PartFile[]
}): PartFiles {
  const { folder, name, kept } = options
  const open_ = new Map<string, OpenPart>()
  const failed: { with?: unknown } = {}

  /** Writes nothing more once something failed. */
  async function surely<T>(work: () => Promise<T>): Promise<T> {
    if ('with' in failed) throw failed.with
    try {
      return await work()
    } catch (error) {
      failed.with = error
      throw error
    }
  }

  async function part(table: string): Promise<OpenPart> {
    const known = open_.get(table)
    if (known !== undefined) return known
    await mkdir(folder, { recursive: true })
    const path = join(folder, `${table}.${name}.part`)
    const buffer = Buffer.allocUnsafeSlow(bufferBytes)
    const made = { file: await open(path, 'w'), path, buffer, pending: 0, bytes: 0, rows: 0 }
    open_.set(table, made)
    return made
  }

  async function write(one: OpenPart, bytes: Buffer): Promise<void> {
    for (let done = 0; done < bytes.length;) {
      const { bytesWritten } = await one.file.write(bytes, done)
      done += bytesWritten
    }
    one.bytes += bytes.length
  }

  async function flush(one: OpenPart): Promise<void> {
    if (one.pending === 0) return
    await write(one, one.buffer.subarray(0, one.pending))
    one.pending = 0
  }

  return {
    append: ({ table, text, count }) =>
      surely(async () => {
        const one = await part(table)
        one.rows += count
        const most = text.length * mostBytesEach
        if (one.pending + most > bufferBytes) await flush(one)
        if (most > bufferBytes) await write(one, Buffer.from(text))
        else one.pending += one.buffer.write(text, one.pending)
      }),
    async settle() {
      await surely(async () => {
        for (const one of open_.values()) {
          await flush(one)
          await one.file.datasync()
        }
      })
      const own = [...open_].map(([table, { path, bytes, rows }]) => ({ table, path, bytes, rows }))
      return [...kept, ...own]
    },
    async close() {
      for (const one of open_.values()) await one.file.close()
      open_.clear()
    },
  }
}
