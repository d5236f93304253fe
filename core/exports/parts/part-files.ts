import { mkdir, open, type FileHandle } from 'node:fs/promises'
import { join } from 'node:path'
import type { PartFile } from '../../destinations/destination.ts'

/** Rows are written in chunks of this size, large enough that the cost of the system call is negligible. */
const bufferBytes = 1 << 20
/** The most UTF-8 bytes per UTF-16 code unit of a string. */
const mostBytesEach = 3

interface OpenPart {
  file: FileHandle
  path: string
  /** Reused for every chunk: strings waiting to be written would be moved by each garbage collection. */
  buffer: Buffer
  pending: number
  bytes: number
  rows: number
}

export interface PartFiles {
  /** Buffers encoded rows of one table; they are durable only after the next `flush`. */
  append(rows: { table: string; text: string; count: number }): Promise<void>
  /**
   * Writes and fsyncs what was appended. Returns all valid part files: those kept from before and this attempt's
   * own. Once a write has failed it always throws, because the state of those bytes on disk is unknown.
   */
  flush(): Promise<PartFile[]>
  /** The bytes in the files of this attempt, or of its current chunk. */
  waiting(): number
  close(): Promise<void>
}

/**
 * The part files of one attempt at one segment. Each attempt writes its own files, so two attempts never share one;
 * a file's bytes are valid only as far as a checkpoint says.
 */
export function openPartFiles(options: {
  folder: string
  name: string
  kept: readonly PartFile[]
  /** Whether each flush completes its files: what other workers see never changes. */
  inChunks?: boolean
}): PartFiles {
  const { folder, name, inChunks = false } = options
  let kept = options.kept
  let chunk = 1
  const open_ = new Map<string, OpenPart>()
  const failed: { with?: unknown } = {}

  /** Runs `work`, but writes nothing more once something has failed. */
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
    const attempt = inChunks ? `${name}.${String(chunk).padStart(5, '0')}` : name
    const path = join(folder, `${table}.${attempt}.part`)
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

  async function close(): Promise<void> {
    for (const one of open_.values()) await one.file.close()
    open_.clear()
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
    async flush() {
      await surely(async () => {
        for (const one of open_.values()) {
          await flush(one)
          await one.file.datasync()
        }
      })
      const own = [...open_].map(([table, { path, bytes, rows }]) => ({ table, path, bytes, rows }))
      const all = [...kept, ...own]
      if (inChunks && own.length > 0) {
        await close()
        kept = all
        chunk += 1
      }
      return all
    },
    waiting: () => [...open_.values()].reduce((sum, { bytes, pending }) => sum + bytes + pending, 0),
    close,
  }
}
