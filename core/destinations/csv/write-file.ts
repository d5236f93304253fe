import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'
import type { RowCounter } from '../../tables/encoder/row-scanner.ts'

export interface Written {
  bytes: number
  sha256: string
  /** As the counter gives it: NaN where the last row is torn. */
  rows: number
}

/**
 * Writes a new file and fsyncs it, with its sum and its rows counted on the way. Without a path nothing is written
 * and the account is the same.
 */
export async function writeFile(options: {
  path: string | undefined
  chunks: AsyncIterable<Buffer>
  counter: RowCounter
}): Promise<Written> {
  const { path, chunks, counter } = options
  const hash = createHash('sha256')
  const file = path === undefined ? undefined : await open(path, 'wx')
  let bytes = 0
  try {
    for await (const chunk of chunks) {
      // The disk is busy with a chunk while it is counted.
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
