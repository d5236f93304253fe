import { createHash } from 'node:crypto'
import { open } from 'node:fs/promises'

/** Writes a new file and fsyncs it, computing its checksum on the way. */
export async function writeFile(options: {
  path: string
  /** Each is used only until the next one is asked for. */
  chunks: AsyncIterable<Buffer>
}): Promise<{ bytes: number; sha256: string }> {
  const { path, chunks } = options
  const hash = createHash('sha256')
  await using file = await open(path, 'wx')
  let bytes = 0
  for await (const chunk of chunks) {
    // Overlaps the disk write with the checksum of the same chunk.
    const writing = file.writeFile(chunk)
    hash.update(chunk)
    bytes += chunk.length
    await writing
  }
  await file.sync()
  return { bytes, sha256: hash.digest('hex') }
}
