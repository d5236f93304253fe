import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { RowCounter } from '../../tables/encoder/row-scanner.ts'

export interface Written {
  bytes: number
  sha256: string
  /** From the row counter: NaN if the last row is torn. */
  rows: number
}

/**
 * Writes a new file and fsyncs it, computing its checksum and row count on the way. Without a path it writes
 * nothing and returns the same result.
 */
export async function writeFile(options: {
  path: string | undefined
  /** Each is used only until the next one is asked for. */
  chunks: AsyncIterable<Buffer>
  counter: RowCounter
}): Promise<Written> {
  const { path, chunks, counter } = options
  const hash = createHash('sha256')
  const file = path === undefined ? undefined : await open(path, 'wx')
  let bytes = 0
  try {
    for await (const chunk of chunks) {
      // Overlaps the disk write with counting the same chunk.
      const writing = file?.writeFile(chunk)
      counter.add(chunk)
      hash.update(chunk)
      bytes += chunk.length
      await writing
    }
    await file?.sync()
    return { bytes, rows: counter.rows(), sha256: hash.digest('hex') }
  } finally {
    await file?.close()
  }
}
